package batch

import (
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// Mode determines how aggregates are handled.
type Mode uint8

const (
	Unpack     Mode = iota // each packed record is a separate record
	UnpackOwn              // the same, but without records whose keys do not belong to the shard
	KeepPacked             // aggregates stay unchanged
)

// Unpacked contains statistics about aggregates.
type Unpacked struct {
	Aggregates int // number of unpacked aggregates
	Records    int // number of records in them
	Dropped    int // number of records that UnpackOwn dropped
	Repeats    int // number of records that were dropped as repeats
	Damaged    int // number of payloads that only looked like aggregates
}

// Repeats recognizes records that were handled before.
type Repeats interface {
	// Read notes a sub-record of the record of the stream with a sequence number, and reports
	// whether it is a repeat.
	Read(number string, sub uint32, n aggregate.Number, arrival time.Time) bool
}

// Unpacker converts pages to runs of records. One reader of one shard owns it.
type Unpacker struct {
	Filter  *Filter // nil if all records are handled
	Repeats Repeats // nil if repeats are handled

	mode Mode
	from source.Origin // copied for records with tags; its Number is that of the last one
	own  aggregate.HashRange
	// resume is a position that may be inside an aggregate. The sub-records before it are already
	// done, so they are omitted.
	resume shard.Position
	spare  [2][]source.Record // one run is handled while the next one is filled
	parsed aggregate.Aggregate
	count  Unpacked
}

// unpackers is a pool, so that only shards with something to unpack need an Unpacker.
var unpackers = sync.Pool{New: func() any { return new(Unpacker) }}

// NewUnpacker returns an Unpacker for a shard. The caller must call Release.
func NewUnpacker(mode Mode, stream, shardID string, own shard.HashRange, resume shard.Position) *Unpacker {
	u := unpackers.Get().(*Unpacker)
	u.mode, u.from, u.resume = mode, source.Origin{Stream: stream, Shard: shardID}, resume
	u.own = aggregate.HashRange{
		Start: aggregate.HashKey{Hi: own.Start.Hi, Lo: own.Start.Lo}, End: aggregate.HashKey{Hi: own.End.Hi, Lo: own.End.Lo},
	}
	return u
}

// Release returns the Unpacker to the pool.
func (u *Unpacker) Release() {
	u.reset()
	unpackers.Put(u)
}

// reset makes u equal to a new Unpacker, but keeps its memory. Its runs must not keep a page in
// memory.
func (u *Unpacker) reset() {
	for i, run := range u.spare {
		clear(run[:cap(run)])
		u.spare[i] = run[:0]
	}
	u.parsed.Reset()
	*u = Unpacker{spare: u.spare, parsed: u.parsed}
}

// records yields the records that are packed in r, without dropped records. If r is not an
// aggregate, it yields r.
func (u *Unpacker) records(r *source.Record) iter.Seq[source.Record] {
	return func(yield func(source.Record) bool) {
		if u.mode == KeepPacked || !aggregate.Marked(r.Data) {
			if rec := *r; u.Filter.passes(&rec) {
				yield(rec)
			}
			return
		}
		packed, damage := u.parsed.Parse(r.Data)
		if damage != nil {
			u.count.Damaged++
		}
		if !packed {
			if rec := *r; u.Filter.passes(&rec) {
				yield(rec)
			}
			return
		}
		defer u.parsed.Reset()
		u.count.Aggregates++
		if u.mode == UnpackOwn {
			u.count.Dropped += u.parsed.Keep(u.own)
		}
		done := uint32(0)
		if r.SequenceNumber == u.resume.SequenceNumber() && u.resume.Done() != shard.Whole {
			done = u.resume.Done()
		}
		numbered := u.Repeats != nil && u.parsed.Numbered()
		n := u.parsed.Len()
		for i := range n {
			sub := u.parsed.Record(i)
			repeat := numbered && u.Repeats.Read(r.SequenceNumber, sub.Sub(), sub.Number(), time.UnixMilli(r.Arrival))
			if sub.Sub() < done {
				continue
			}
			u.count.Records++
			if repeat {
				u.count.Repeats++
				continue
			}
			rec := *r
			rec.Data, rec.Key, rec.Done = sub.Data(), sub.PartitionKey(), sub.Sub()+1
			if i == n-1 {
				rec.Done = shard.Whole
			}
			if !u.Filter.passes(&rec) {
				continue
			}
			if tags := sub.Tags(); !tags.IsZero() {
				u.tag(&rec, tags)
			}
			if !yield(rec) {
				return
			}
		}
	}
}

// tag gives a record its own origin with its tags.
func (u *Unpacker) tag(r *source.Record, tags aggregate.Tags) {
	if u.from.Number != r.SequenceNumber {
		u.from.Number = strings.Clone(r.SequenceNumber)
	}
	own := u.from
	own.Tags, own.Done = tags.Clone(), r.Done
	r.From = &own
}

// begin returns an empty run with room for n records.
func (u *Unpacker) begin(n int) []source.Record {
	u.spare[0], u.spare[1] = u.spare[1], u.spare[0]
	if cap(u.spare[0]) < n {
		u.spare[0] = make([]source.Record, 0, n)
	}
	return u.spare[0][:0]
}

// Counted returns the statistics about aggregates so far. It returns false if the pages contained
// neither aggregates nor damaged payloads.
func (u *Unpacker) Counted() (Unpacked, bool) {
	return u.count, u.count.Aggregates > 0 || u.count.Damaged > 0
}

// Passes reports whether at least one record of a page passes the filter.
func (u *Unpacker) Passes(page *source.Page) bool {
	for i := range page.Records {
		for range u.records(&page.Records[i]) {
			return true
		}
	}
	return false
}
