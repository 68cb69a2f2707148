package engine

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// entry is one record to put.
type entry struct {
	Key, Hash optText
	Data      codec.Opt[[]byte]

	at hashKey // the record's hash; unused if the stream spreads records itself
}

func (p *entry) size() int64 { return int64(len(p.Data.V) + len(p.Key.V)) }

// putRules are the stream's rules for entries.
type putRules struct {
	most  int64 // maximum size of the data in bytes
	keyed bool  // entries must have a partition key
}

// putRules returns the rules of the stream that ref names. If the stream does not exist, it returns
// the rules of a new stream.
func (c *call) putRules(ref *streamRef) putRules {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[ref.stream()]; s != nil && c.settle(s, c.now) {
		return putRules{s.maxRecordKiB << 10, !s.auto}
	}
	return putRules{1 << 20, true}
}

// wrong reports whether validate would find a fault in the entry.
func (p *entry) wrong(rules putRules) bool {
	var v validator
	p.validate(&v, "", rules)
	return len(v.faults) > 0
}

func (p *entry) validate(v *validator, prefix string, rules putRules) {
	if p.Key.Set {
		v.length(p.Key.V, prefix+"partitionKey", 1, maxKeyLength)
	} else if rules.keyed {
		v.required(false, prefix+"partitionKey")
	}
	if p.Hash.Set {
		v.pattern(p.Hash.V, prefix+"explicitHashKey", hashPattern)
	}
	if n := len(p.Data.V); !p.Data.Set {
		v.required(false, prefix+"data")
	} else if int64(n) > rules.most {
		v.fault(fmt.Sprintf("java.nio.HeapByteBuffer[pos=0 lim=%d cap=%d]", n, n), prefix+"data", fmt.Sprintf("Member must have length less than or equal to %d", rules.most))
	}
}

// locate computes the hash of the entry and stores it in the entry.
func (p *entry) locate() error {
	if !p.Hash.Set {
		p.at = hashOf(p.Key.V)
		return nil
	}
	at, ok := parseHashKey(p.Hash.V)
	if !ok {
		return invalid("Invalid ExplicitHashKey. ExplicitHashKey must be in the range: [0, 2^128-1]. Specified value was %s", p.Hash.V)
	}
	p.at = at
	return nil
}

// PutRecord puts one record.
type PutRecord struct {
	streamRef
	entry
	after  optText
	dryRun optBool

	Shard, Sequence string // the location of the stored record
}

func (r *PutRecord) Fields() codec.Fields {
	return r.fields(
		codec.Field{Name: "Data", Into: &r.Data},
		codec.Field{Name: "PartitionKey", Into: &r.Key},
		codec.Field{Name: "ExplicitHashKey", Into: &r.Hash},
		codec.Field{Name: "SequenceNumberForOrdering", Into: &r.after},
		codec.Field{Name: "DryRun", Into: &r.dryRun},
	)
}

func (r *PutRecord) target(*Engine) Target { return Target{Stream: r.stream(), Records: 1} }

func (r *PutRecord) do(c *call) error {
	var v validator
	if r.after.Set {
		v.pattern(r.after.V, "sequenceNumberForOrdering", sequencePattern)
	}
	r.entry.validate(&v, "", c.putRules(&r.streamRef))
	r.streamRef.validate(&v)
	if err := v.err(); err != nil {
		return err
	}
	located := r.locate() // hashes before taking the lock
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.writable(&r.streamRef)
	if err != nil {
		return err
	}
	if located != nil {
		return located
	}
	if r.after.Set && !c.orders(s, &r.entry, r.after.V) {
		return invalid("ExclusiveMinimumSequenceNumber %s used in PutRecord on stream %s under account %s is invalid.", r.after.V, s.name, c.cfg.Account)
	}
	if err := c.acceptable(s, r.entry.size(), &r.entry); err != nil {
		return err
	}
	if r.dryRun.V {
		return dryRun()
	}
	sh, sequence, err := c.put(s, &r.entry)
	if err != nil {
		return err
	}
	r.Shard, r.Sequence = sh.id, sequence
	c.out.Map()
	c.out.Key("ShardId").Text(r.Shard)
	c.out.Key("SequenceNumber").Text(r.Sequence)
	writeEncryption(c.out, s.kms)
	c.out.End()
	return nil
}

// orders reports whether text is a valid SequenceNumberForOrdering of the entry. The number may
// have any known format, and its time must have passed. If the number belongs to an open shard, the
// entry must belong to the same shard, unless the stream spreads records itself. A number of a
// closed shard is always valid, because that shard was split or merged since.
func (c *call) orders(s *stream, p *entry, text string) bool {
	n, ok := parseSequence(text)
	if !ok {
		_, ok = parseOldSequence(text)
		return ok
	}
	if n.arrival > seconds(c.now) || !n.plausible() {
		return false
	}
	of := s.byNumber[n.shard]
	return of == nil || !of.isOpen() || s.auto || of == s.route(p.at)
}

// PutRecords puts up to five hundred records, each with a separate result.
type PutRecords struct {
	streamRef
	entries []entry
	set     bool
	dryRun  optBool
}

func (r *PutRecords) Fields() codec.Fields {
	return r.fields(
		codec.Field{Name: "Records", Into: func(d codec.Decoder) error {
			r.set, r.entries = true, r.entries[:0]
			if err := codec.Expect(d, codec.TypeList); err != nil {
				return err
			}
			return d.Array(func() error {
				if len(r.entries) > 16*maxPutRecords {
					return d.Skip() // the request is refused anyway
				}
				r.entries = append(r.entries, entry{})
				return r.entries[len(r.entries)-1].decode(d)
			})
		}},
		codec.Field{Name: "DryRun", Into: &r.dryRun},
	)
}

func (p *entry) decode(d codec.Decoder) error {
	if err := codec.Expect(d, codec.TypeStructure); err != nil {
		return err
	}
	return d.Map(func(key []byte) (err error) {
		if d.Peek() == codec.Null {
			return d.Skip()
		}
		switch string(key) {
		case "Data":
			if err = codec.Expect(d, codec.TypeBlob); err == nil {
				p.Data.V, err = d.Blob()
			}
			p.Data.Set = true
		case "PartitionKey":
			if err = codec.Expect(d, codec.TypeString); err == nil {
				p.Key.V, err = d.Text()
			}
			p.Key.Set = true
		case "ExplicitHashKey":
			if err = codec.Expect(d, codec.TypeString); err == nil {
				p.Hash.V, err = d.Text()
			}
			p.Hash.Set = true
		default:
			err = d.Skip()
		}
		return err
	})
}

func (r *PutRecords) target(*Engine) Target {
	return Target{Stream: r.stream(), Records: len(r.entries)}
}

// outcome is the result of one entry.
type outcome struct{ shard, sequence, code, message string }

func (r *PutRecords) check(rules putRules) error {
	var v validator
	if v.required(r.set, "records") {
		v.lengthOf(len(r.entries), r.shown, "records", 1, maxPutRecords)
	}
	for i := range r.entries {
		if v.full() {
			break
		}
		if r.entries[i].wrong(rules) { // saves building the names of fields for valid entries
			r.entries[i].validate(&v, "records."+strconv.Itoa(i+1)+".member.", rules)
		}
	}
	r.validate(&v)
	return v.err()
}

// shown returns the list of entries as the service prints it in an error: the Java class and a
// hash.
func (r *PutRecords) shown() string {
	return listed(slices.Repeat([]string{"com.amazonaws.kinesis.v20131202.PutRecordsRequestEntry@c965e310"}, len(r.entries)))
}

func (r *PutRecords) do(c *call) error {
	if err := r.check(c.putRules(&r.streamRef)); err != nil {
		return err
	}
	results := make([]outcome, len(r.entries))
	kms, err := r.store(c, results)
	if err != nil {
		return err
	}
	failed := 0
	for i := range results {
		if results[i].code != "" {
			failed++
		}
	}
	out := c.out
	out.Grow(128 + 160*len(results))
	out.Map()
	out.Key("FailedRecordCount").Int(int64(failed))
	out.Key("Records").Array(len(results))
	for i := range results {
		o := &results[i]
		out.Elem().Map()
		if o.code != "" {
			out.Key("ErrorCode").Text(o.code)
			out.Key("ErrorMessage").Text(o.message)
		} else {
			out.Key("SequenceNumber").Text(o.sequence)
			out.Key("ShardId").Text(o.shard)
		}
		out.End()
	}
	out.End()
	writeEncryption(out, kms)
	out.End()
	return nil
}

// locate computes the hashes of all entries. The caller does not hold the lock yet.
func (r *PutRecords) locate() error {
	for i := range r.entries {
		if err := r.entries[i].locate(); err != nil {
			return err
		}
	}
	return nil
}

// store appends each entry that the limits allow, and writes the outcome of each entry to results.
func (r *PutRecords) store(c *call, results []outcome) (kms bool, err error) {
	located := r.locate()
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.writable(&r.streamRef)
	if err != nil {
		return false, err
	}
	if located != nil {
		return false, located
	}
	var total int64
	for i := range r.entries {
		total += r.entries[i].size()
	}
	if total > maxPutBytes {
		return false, invalid("Records size exceeds 10 MB limit")
	}
	for i := range r.entries {
		if err := c.acceptable(s, total, &r.entries[i]); err != nil {
			return false, err
		}
	}
	if r.dryRun.V {
		return false, dryRun()
	}
	for i := range r.entries {
		o := &results[i]
		if i < len(c.inject.EntryFaults) && c.inject.EntryFaults[i] != "" {
			o.code, o.message = c.inject.EntryFaults[i], "Internal service failure."
			if o.code == "ProvisionedThroughputExceededException" {
				o.message = c.rateExceeded(s, c.routeEntry(s, &r.entries[i]))
			}
			continue
		}
		sh, sequence, err := c.put(s, &r.entries[i])
		if err != nil {
			e := err.(*Error) //nolint:errorlint // put returns no other type
			o.code, o.message = e.Code, e.Message
			continue
		}
		o.shard, o.sequence = sh.id, sequence
	}
	return s.kms, nil
}

// acceptable checks an entry against the rules of its stream. It also checks that memory has room
// for total more bytes.
func (c *call) acceptable(s *stream, total int64, p *entry) error {
	if !p.Key.Set && !s.auto {
		var v validator
		v.required(false, "partitionKey")
		return v.err()
	}
	if most := s.maxRecordKiB << 10; p.size() > most {
		return validation("1 validation error detected: Value at 'data' failed to satisfy constraint: Member must have length less than or equal to %d, together with the partition key; it is %d. UpdateMaxRecordSize allows more.", most, p.size())
	}
	if c.cfg.MaxBytes > 0 && c.bytes+total > c.cfg.MaxBytes {
		for _, other := range c.streams {
			c.expireAll(other, c.now)
		}
		if c.bytes+total > c.cfg.MaxBytes {
			return limitExceeded("This server keeps records in memory, at most %d bytes (MaxBytes). Delete a stream, shorten a retention period or start it with a larger bound.", c.cfg.MaxBytes)
		}
	}
	return nil
}

func (c *call) routeEntry(s *stream, p *entry) *shard {
	if s.auto {
		return s.open[s.rotation%uint64(len(s.open))]
	}
	return s.route(p.at)
}

// put appends an entry to its shard, if the write limits of the shard allow it.
func (c *call) put(s *stream, p *entry) (*shard, string, error) {
	sh := c.routeEntry(s, p)
	s.rotation++
	c.expire(s, sh, c.now)
	size := p.size()
	if l := &sh.limits; !c.unlimited {
		if !l.writeRecords.has(c.now, writeRecordsPerSecond, 1) || !l.writeBytes.has(c.now, writeBytesPerSecond, float64(size)) {
			return nil, "", throttled("%s", c.rateExceeded(s, sh))
		}
		l.writeRecords.use(c.now, writeRecordsPerSecond, 1)
		l.writeBytes.use(c.now, writeBytesPerSecond, float64(size))
	}
	c.bytes += size
	sequence := sh.append(c.now, p.Data.V, p.Key, s.kms)
	s.wakeQueues()
	return sh, sequence, nil
}

func (c *call) rateExceeded(s *stream, sh *shard) string {
	return "Rate exceeded for shard " + sh.id + " in stream " + s.name + " under account " + c.cfg.Account + "."
}

// writeEncryption writes the encryption type of an encrypted record. For other records it writes
// nothing, like the service.
func writeEncryption(out *codec.Encoder, kms bool) {
	if kms {
		out.Key("EncryptionType").Text("KMS")
	}
}
