package weirtest

import (
	"fmt"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
)

// Condition is what a test waits for.
type Condition struct {
	// What the test waits for, in words, such as "100 handled records".
	What string
	// Holds reports whether it does, and how things stand, "" if there is nothing to say. It is
	// called every 5 ms.
	Holds func() (ok bool, now string)
}

// When is a condition of the test's own.
func When(what string, holds func() bool) Condition {
	return Condition{what, func() (bool, string) { return holds(), "" }}
}

// Handled is that workers have handled so many records together, those that are handled again
// included.
func Handled(records int, workers ...*Worker) Condition {
	return Condition{fmt.Sprintf("%d handled records", records), func() (bool, string) {
		n := uint64(0)
		for _, w := range workers {
			n += w.Consumer.Counts().RecordsHandled
		}
		return n >= uint64(max(records, 0)), fmt.Sprintf("%d are", n)
	}}
}

// AtTip is that each open shard of a stream is read by one of the workers, and all records of the
// stream are handled that they have to handle: with [weir.Latest] and [weir.At] not those that
// arrived before.
func AtTip(srv *kinesistest.Server, stream string, workers ...*Worker) Condition {
	return Condition{"the tip of " + stream, func() (bool, string) {
		held := map[string]shard.Position{}
		for _, w := range workers {
			for _, s := range w.Consumer.Shards() {
				if s.Stream == stream {
					held[s.Shard] = s.At
				}
			}
		}
		return atTip(srv.OpenShards(stream), srv.LastRecords(stream), held)
	}}
}

// atTip decides whether all is handled of shards that are held, by how far each is.
func atTip(open []string, last map[string]kinesistest.Record, held map[string]shard.Position) (bool, string) {
	for _, id := range open {
		at, some := held[id]
		if !some {
			return false, id + " is not read yet"
		}
		delete(held, id)
		record, some := last[id]
		if some && !past(at, record) {
			return false, fmt.Sprintf("%s is at %s, its last record is %s", id, at, record.SequenceNumber)
		}
	}
	for id := range held {
		return false, id + " is closed, and not read to its end yet"
	}
	return true, ""
}

// past reports whether a record is handled, or need not be, by a worker that is at a position.
func past(at weir.Position, r kinesistest.Record) bool {
	switch at.Kind() {
	case shard.Tip:
		return true
	case shard.Time:
		return r.Arrival.Before(at.Time())
	default:
		p, err := shard.After(r.SequenceNumber)
		return err == nil && at.Compare(p) >= 0
	}
}
