package weir

import (
	"iter"
	"strings"
	"sync"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// Aggregates says what becomes of records into which the Kinesis Producer Library (KPL) has packed
// many.
type Aggregates int

const (
	// Unpack makes each packed record a [Record] of its own, with its own key and position. The
	// default. A payload that only looks like an aggregate, or is a damaged one, is delivered as it
	// is.
	Unpack Aggregates = iota
	// UnpackOwn is Unpack without the packed records whose keys do not belong to the shard: after a
	// split the KPL sends those once more, to the right shard. Only for streams whose producers do
	// that: elsewhere, and on streams that distribute records by themselves, it drops the only
	// copy. What it drops is counted in [Events].Unpacked.
	UnpackOwn
	// KeepPacked delivers aggregates as they are.
	KeepPacked
)

// unpacker turns pages into runs of records, which keep the form they were read in. It belongs to
// one reader of one shard.
type unpacker struct {
	mode Aggregates
	from origin // what those of records with tags begin as; its Number is that of the last one
	own  aggregate.HashRange
	// of the container that it points into, what is done already is left out
	resume Position
	spare  [2][]source.Record // one run is handed over while the next is filled
	parsed aggregate.Aggregate
	count  Unpacked
	filter *filtering // nil if all records are handled
}

// unpackers are for shards that have something to unpack now, so that the others need none.
var unpackers = sync.Pool{New: func() any { return new(unpacker) }}

// newUnpacker prepares one for a shard. Give it back with release.
func newUnpacker(mode Aggregates, stream, shardID string, own shard.HashRange, resume Position) *unpacker {
	u := unpackers.Get().(*unpacker)
	u.mode, u.from, u.resume = mode, origin{Stream: stream, Shard: shardID}, resume
	u.own = aggregate.HashRange{
		Start: aggregate.HashKey{Hi: own.Start.Hi, Lo: own.Start.Lo}, End: aggregate.HashKey{Hi: own.End.Hi, Lo: own.End.Lo},
	}
	return u
}

// release gives the unpacker back.
func (u *unpacker) release() {
	u.reset()
	unpackers.Put(u)
}

// reset makes u as good as new, except that it keeps its memory. Its runs must not keep a page in
// memory.
func (u *unpacker) reset() {
	for i, run := range u.spare {
		clear(run[:cap(run)])
		u.spare[i] = run[:0]
	}
	u.parsed.Reset()
	*u = unpacker{spare: u.spare, parsed: u.parsed}
}

// unpacks reports whether there is something to unpack in a page, or to drop.
func (u *unpacker) unpacks(page *source.Page) bool {
	return u.mode != KeepPacked && page.Marked || u.filter != nil
}

// runs yields the records of a page in runs of a batch's size at most, in order, and with each
// whether it is the last; one run without records for a page that has none and ends its shard. A
// run is in the memory of the page's records if there is nothing to unpack; else it is valid until
// the run after the next is begun.
func (u *unpacker) runs(page *source.Page, size batchSize) iter.Seq2[[]source.Record, bool] {
	return func(yield func([]source.Record, bool) bool) {
		if !u.unpacks(page) {
			// Nearly all pages of nearly all streams.
			all := page.Records
			for n := size.cut(all, 0, 0); n < len(all); n = size.cut(all, 0, 0) {
				if !yield(all[:n:n], false) {
					return
				}
				all = all[n:]
			}
			if len(all) > 0 || page.End {
				yield(all, true)
			}
			return
		}
		var before []source.Record // is held back until it is known whether it is the last
		for run := range u.unpacked(page, size) {
			if before != nil && !yield(before, false) {
				return
			}
			before = run
		}
		if before != nil || page.End {
			yield(before, true)
		}
	}
}

// unpacked yields runs of a batch's size at most of a page with aggregates.
func (u *unpacker) unpacked(page *source.Page, size batchSize) iter.Seq[[]source.Record] {
	return func(yield func([]source.Record) bool) {
		var run []source.Record
		bytes := 0
		for i := range page.Records {
			for rec := range u.records(&page.Records[i]) {
				if len(run) > 0 && (len(run) == size.records || size.bytes > 0 && bytes+len(rec.Data) > size.bytes) {
					full := run
					run = nil
					if !yield(full) {
						return
					}
				}
				if run == nil {
					run, bytes = u.begin(min(max(len(page.Records)-i, 1), size.records)), 0
				}
				run = append(run, rec)
				bytes += len(rec.Data)
			}
		}
		if len(run) > 0 {
			yield(run)
		}
	}
}

// records yields the records that are packed in r, or r itself where it is no aggregate, without
// those that are dropped.
func (u *unpacker) records(r *source.Record) iter.Seq[source.Record] {
	return func(yield func(source.Record) bool) {
		if u.mode == KeepPacked || !aggregate.Marked(r.Data) {
			if rec := *r; u.filter.passes(&rec) {
				yield(rec)
			}
			return
		}
		packed, damage := u.parsed.Parse(r.Data)
		if damage != nil {
			u.count.Damaged++
		}
		if !packed {
			if rec := *r; u.filter.passes(&rec) {
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
		n := u.parsed.Len()
		for i := range n {
			sub := u.parsed.Record(i)
			if sub.Sub() < done {
				continue
			}
			rec := *r
			rec.Data, rec.Key, rec.Done = sub.Data(), sub.PartitionKey(), sub.Sub()+1
			if i == n-1 {
				rec.Done = shard.Whole
			}
			u.count.Records++
			if !u.filter.passes(&rec) {
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

// tag gives a record an origin of its own, which has its tags.
func (u *unpacker) tag(r *source.Record, tags aggregate.Tags) {
	if u.from.Number != r.SequenceNumber {
		u.from.Number = strings.Clone(r.SequenceNumber)
	}
	own := u.from
	own.Tags, own.Done = tags.Clone(), r.Done
	r.From = &own
}

// begin returns an empty run with room for n records.
func (u *unpacker) begin(n int) []source.Record {
	u.spare[0], u.spare[1] = u.spare[1], u.spare[0]
	if cap(u.spare[0]) < n {
		u.spare[0] = make([]source.Record, 0, n)
	}
	return u.spare[0][:0]
}

// counted returns what was counted since the last call, false when that is nothing.
func (u *unpacker) counted() (Unpacked, bool) {
	c := u.count
	u.count = Unpacked{}
	c.Stream, c.Shard = u.from.Stream, u.from.Shard
	return c, c.Aggregates > 0 || c.Damaged > 0
}
