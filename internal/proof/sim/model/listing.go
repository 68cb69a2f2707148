package model

import (
	"strconv"
	"strings"
	"time"
)

// The fields of answers, in alphabetical order. They are structs because there are many answers,
// and maps would cost several times as much.
type (
	listed struct {
		AdjacentParentShardId string `json:",omitempty"`
		HashKeyRange          hashes
		ParentShardId         string `json:",omitempty"`
		SequenceNumberRange   struct {
			EndingSequenceNumber   string `json:",omitempty"`
			StartingSequenceNumber string
		}
		ShardId string
	}
	hashes struct{ EndingHashKey, StartingHashKey string }
)

// page is the position at which a listing continues. Each answer of ListShards shows the current
// state of the stream.
type page struct {
	stream, filter string
	life           int64
	at             int64 // time of AT_TIMESTAMP in milliseconds
	from           int   // index of the next shard of the stream
}

func (p page) String() string {
	return strings.Join([]string{p.stream, p.filter, strconv.FormatInt(p.life, 10), strconv.FormatInt(p.at, 10), strconv.Itoa(p.from)}, "|")
}

func parsePage(token string) (p page, ok bool) {
	parts := strings.Split(token, "|")
	if len(parts) != 5 {
		return p, false
	}
	var errs [3]error
	p.stream, p.filter = parts[0], parts[1]
	p.life, errs[0] = strconv.ParseInt(parts[2], 10, 64)
	p.at, errs[1] = strconv.ParseInt(parts[3], 10, 64)
	p.from, errs[2] = strconv.Atoi(parts[4])
	return p, errs == [3]error{} && p.from > 0
}

// list carries out ListShards.
func (st *Stream) list(c Call, w Whim) Answer {
	if c.page.from > 0 && c.page.life != st.Life {
		return Fail(400, "ExpiredNextTokenException", "of a stream that is gone")
	}
	out := struct {
		NextToken string `json:",omitempty"`
		Shards    []listed
	}{Shards: make([]listed, 0, len(st.Shards))}
	for i := c.page.from; i < len(st.Shards); i++ {
		sh := st.Shards[i]
		if !sh.GoneAt.IsZero() || !st.selects(c, sh) {
			continue
		}
		if w.Few > 0 && len(out.Shards) == w.Few {
			out.NextToken = page{st.Name, c.filter, st.Life, c.page.at, i}.String()
			break
		}
		out.Shards = append(out.Shards, sh.listed())
	}
	return answer(out)
}

func (st *Stream) selects(c Call, sh *Shard) bool {
	switch c.filter {
	case "AT_LATEST":
		return sh.Closed.IsZero()
	case "AT_TIMESTAMP":
		opened := st.Born
		if len(sh.Parents) > 0 {
			opened = sh.Parents[0].Closed
		}
		at := time.UnixMilli(c.page.at)
		return !opened.After(at) && (sh.Closed.IsZero() || !sh.Closed.Before(at))
	}
	return true
}

func (sh *Shard) listed() listed {
	one := listed{ShardId: sh.ID, HashKeyRange: sh.hashes}
	one.SequenceNumberRange.StartingSequenceNumber = Number(sh.Start)
	if !sh.Closed.IsZero() {
		end := sh.Start
		if n := len(sh.Records); n > 0 {
			end = sh.Records[n-1].Seq
		}
		one.SequenceNumberRange.EndingSequenceNumber = Number(end)
	}
	for i, p := range sh.Parents {
		*[]*string{&one.ParentShardId, &one.AdjacentParentShardId}[i] = p.ID
	}
	return one
}
