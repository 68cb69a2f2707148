package model

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Call is one request to the service.
type Call struct {
	Op            string // name of the operation, such as GetRecords
	Stream, Shard string
	kind, start   string // starting position of the requested iterator
	at            time.Time
	it            iterator // iterator in the request
	known         bool     // this model created the iterator
	limit         int
	filter        string
	consumer      string // its name, or its ARN in SubscribeToShard
	loose         bool   // positions need not belong to records
	Puts          []PutEntry
	cbor          bool // the format of a call of PutRecords
	page          page
}

// Answer is the answer to a call. Body is CBOR if the field CBOR is true, otherwise JSON. The body
// of a subscription is an event stream.
type Answer struct {
	Status int
	Body   []byte
	CBOR   bool
	// Reached is the sequence number of the last record in the answer. It is 0 if there is no
	// record.
	Reached uint64
}

// iteratorLife is the lifetime of an iterator.
const iteratorLife = 5 * time.Minute

// mostBytes is the maximum size of an answer to GetRecords.
const mostBytes = 10 << 20

// Read parses a request.
func Read(target, contentType string, body []byte) (Call, error) {
	_, op, _ := strings.Cut(target, ".")
	c := Call{Op: op}
	if op == "PutRecords" {
		return readPuts(body, strings.Contains(contentType, "cbor"))
	}
	if strings.Contains(contentType, "cbor") {
		c.limit = 10000
		err := readCBOR(body, func(name, text []byte, n uint64) {
			switch string(name) {
			case "ShardIterator":
				c.it, c.known = parseIterator(string(text))
			case "Limit":
				c.limit = int(n)
			}
		})
		if err != nil {
			return c, fmt.Errorf("model: %s in CBOR: %w", op, err)
		}
		if op != "GetRecords" {
			return c, fmt.Errorf("model: %s does not come in CBOR", op)
		}
	} else {
		var in struct {
			StreamName, StreamARN, ShardId, ShardIteratorType, StartingSequenceNumber, ShardIterator, NextToken, ConsumerName, ConsumerARN string
			Timestamp                                                                                                                      float64
			Limit                                                                                                                          int
			StartingPosition                                                                                                               struct {
				Type, SequenceNumber string
				Timestamp            float64
			}
			ShardFilter *struct {
				Type      string
				Timestamp float64
			}
		}
		if err := json.Unmarshal(body, &in); err != nil {
			return c, err
		}
		c.Stream, c.Shard, c.kind, c.start, c.limit = in.StreamName, in.ShardId, in.ShardIteratorType, in.StartingSequenceNumber, in.Limit
		c.it, c.known = parseIterator(in.ShardIterator)
		c.at = time.UnixMilli(int64(in.Timestamp*1000 + 0.5))
		c.consumer = in.ConsumerName
		if c.Stream == "" {
			c.Stream = streamOf(in.StreamARN)
		}
		if op == "SubscribeToShard" {
			c.Stream, c.consumer = streamOf(in.ConsumerARN), in.ConsumerARN
			c.kind, c.start = in.StartingPosition.Type, in.StartingPosition.SequenceNumber
			c.at = time.UnixMilli(int64(in.StartingPosition.Timestamp*1000 + 0.5))
		}
		if in.ShardFilter != nil {
			c.filter, c.page.at = in.ShardFilter.Type, int64(in.ShardFilter.Timestamp*1000+0.5)
		}
		if in.NextToken != "" {
			if c.page, c.known = parsePage(in.NextToken); c.known {
				c.Stream, c.filter = c.page.stream, c.page.filter
			}
		}
	}
	if op == "GetRecords" {
		if c.known {
			c.Stream, c.Shard = c.it.stream, c.it.shard
		}
	}
	return c, nil
}

// Tip reports whether the call requests the first page of the shards that are open now.
func (c Call) Tip() bool { return c.Op == "ListShards" && c.filter == "AT_LATEST" && c.page.from == 0 }

// iterator points after a sequence number.
type iterator struct {
	stream, shard string
	life          int64
	after         uint64
	issued        int64
}

func (i iterator) String() string {
	b := append(append(append(append(make([]byte, 0, 80), i.stream...), '|'), i.shard...), '|')
	b = append(strconv.AppendInt(b, i.life, 10), '|')
	b = append(strconv.AppendUint(b, i.after, 10), '|')
	return string(strconv.AppendInt(b, i.issued, 10))
}

func parseIterator(s string) (i iterator, ok bool) {
	var parts [5]string
	for n := range parts {
		part, rest, more := strings.Cut(s, "|")
		if more != (n < 4) {
			return i, false
		}
		parts[n], s = part, rest
	}
	var errs [3]error
	i.stream, i.shard = parts[0], parts[1]
	i.life, errs[0] = strconv.ParseInt(parts[2], 10, 64)
	i.after, errs[1] = strconv.ParseUint(parts[3], 10, 64)
	i.issued, errs[2] = strconv.ParseInt(parts[4], 10, 64)
	return i, errs == [3]error{}
}

// Whim selects among the answers that the service's documentation allows.
type Whim struct {
	Most      int  // maximum number of records on a page; 0 means the requested number
	Empty     bool // no records, although there are some
	Few       int  // maximum number of shards on a page; 0 means all
	NoKids    bool // the end of a shard does not name the children
	FromStart bool // AFTER a record is treated as AT the record
}

// Do carries out a call and returns the answer.
func (s *Service) Do(c Call, w Whim, now time.Time) Answer {
	st := s.streams[c.Stream]
	if st == nil {
		return Fail(400, "ResourceNotFoundException", "no stream "+c.Stream)
	}
	switch c.Op {
	case "ListShards":
		return st.list(c, w)
	case "DescribeStreamSummary":
		return answer(map[string]any{"StreamDescriptionSummary": map[string]any{
			"StreamName": st.Name, "StreamStatus": "ACTIVE", "StreamCreationTimestamp": float64(st.Born.UnixMilli()) / 1000,
			"OpenShardCount": len(st.Open()), "RetentionPeriodHours": 24, "EnhancedMonitoring": []any{},
			"StreamARN": st.arn(),
		}})
	case "GetShardIterator":
		return st.iterator(c, w, now)
	case "GetRecords":
		return st.records(c, w, now)
	case "DescribeStreamConsumer", "RegisterStreamConsumer":
		return st.consumers(c, now)
	}
	return Fail(400, "UnknownOperationException", c.Op)
}

func hashesOf(lo, hi uint64) hashes {
	wide := func(n uint64, low uint64) string {
		b := new(big.Int).Lsh(new(big.Int).SetUint64(n), 64)
		return b.Add(b, new(big.Int).SetUint64(low)).String()
	}
	return hashes{StartingHashKey: wide(lo, 0), EndingHashKey: wide(hi, 1<<64-1)}
}

// HashKeys returns the first and the last hash key of a shard, in the service's format.
func (sh *Shard) HashKeys() (first, last string) {
	return sh.hashes.StartingHashKey, sh.hashes.EndingHashKey
}

func (st *Stream) iterator(c Call, w Whim, now time.Time) Answer {
	sh := st.shard(c.Shard)
	if sh == nil {
		return Fail(400, "ResourceNotFoundException", "no shard "+c.Shard)
	}
	after, fail := sh.place(c, w)
	if fail.Status != 0 {
		return fail
	}
	it := iterator{stream: st.Name, shard: sh.ID, life: st.Life, issued: now.UnixMilli(), after: after}
	return answer(struct{ ShardIterator string }{it.String()})
}

// place returns the sequence number after which a position lies. If place fails, fail is the error
// answer; otherwise the Status of fail is 0.
func (sh *Shard) place(c Call, w Whim) (after uint64, fail Answer) {
	switch c.kind {
	case "TRIM_HORIZON":
		return 0, fail
	case "LATEST":
		if n := len(sh.Records); n > 0 {
			return sh.Records[n-1].Seq, fail
		}
		return sh.Start, fail
	case "AT_TIMESTAMP":
		// Records are not sorted by time: a record may have an earlier time than the previous
		// record.
		i := slices.IndexFunc(sh.Records, func(r Record) bool { return !r.Arrival.Before(c.at) })
		if i >= 0 {
			return sh.Records[i].Seq - 1, fail
		} else if n := len(sh.Records); n > 0 {
			return sh.Records[n-1].Seq, fail
		}
		return sh.Start, fail
	case "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER":
		n, ok := seqOf(c.start)
		i, found := slices.BinarySearchFunc(sh.Records, n, func(r Record, n uint64) int {
			switch {
			case r.Seq < n:
				return -1
			case r.Seq > n:
				return 1
			}
			return 0
		})
		if c.loose && !found && n >= sh.Start {
			found, i = true, max(i, sh.Trimmed)
		}
		if !ok || !found || i < sh.Trimmed {
			return 0, Fail(400, "InvalidArgumentException", "StartingSequenceNumber "+c.start+" is not in shard "+sh.ID)
		}
		if c.kind == "AT_SEQUENCE_NUMBER" || w.FromStart {
			n--
		}
		return n, fail
	}
	return 0, Fail(400, "ValidationException", "iterator type "+c.kind)
}

func (st *Stream) records(c Call, w Whim, now time.Time) Answer {
	it := c.it
	sh := st.shard(c.Shard)
	switch {
	case !c.known || it.life != st.Life:
		return Fail(400, "InvalidArgumentException", "the iterator is not of this stream")
	case sh == nil:
		return Fail(400, "ResourceNotFoundException", "no shard "+c.Shard)
	case now.Sub(time.UnixMilli(it.issued)) > iteratorLife:
		return Fail(400, "ExpiredIteratorException", "iterator of "+time.UnixMilli(it.issued).String())
	}
	page, to, behind := sh.page(it.after, c.limit, w, now)
	var reached uint64
	if len(page) > 0 {
		reached = page[len(page)-1].Seq
		it.after = reached
	}
	out := pageCBOR{records: page, behind: behind}
	if !sh.Closed.IsZero() && to == len(sh.Records) {
		if !w.NoKids {
			out.children = append(out.children, sh.Children...)
		}
	} else {
		it.issued = now.UnixMilli()
		out.next = it.String()
	}
	return Answer{Status: 200, Body: out.encode(), CBOR: true, Reached: reached}
}

// page returns up to limit records after a sequence number. to is the index of the record after the
// page.
func (sh *Shard) page(after uint64, limit int, w Whim, now time.Time) (page []Record, to int, behind int64) {
	from := sort.Search(len(sh.Records), func(i int) bool { return sh.Records[i].Seq > after })
	from = max(from, sh.Trimmed)
	to = min(len(sh.Records), from+limit)
	if w.Most > 0 {
		to = min(to, from+w.Most)
	}
	size := 0
	for i := from; i < to; i++ { // at least one record
		if size += sh.Records[i].size(); size > mostBytes && i > from {
			to = i
		}
	}
	if w.Empty {
		to = from
	}
	if to < len(sh.Records) {
		behind = max(now.Sub(sh.Records[to].Arrival).Milliseconds(), 1)
	}
	return sh.Records[from:to], to, behind
}

// Fail returns an error answer of the service.
func Fail(status int, code, message string) Answer {
	a := answer(map[string]any{"__type": code, "message": message})
	a.Status = status
	return a
}

func answer(body any) Answer {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // cannot fail: only texts and numbers
	}
	return Answer{Status: 200, Body: b}
}
