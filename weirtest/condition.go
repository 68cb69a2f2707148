package weirtest

import (
	"fmt"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
)

// Condition is a condition that a test waits for.
type Condition struct {
	// What describes the condition in words, for example "100 handled records".
	What string
	// Holds reports whether the condition holds. now describes the current state, or is "". It is
	// called every 5 ms.
	Holds func() (ok bool, now string)
}

// When returns a condition with a custom function.
func When(what string, holds func() bool) Condition {
	return Condition{what, func() (bool, string) { return holds(), "" }}
}

// Handled returns a condition on the total number of records that the workers have handled. Records
// that are handled twice count twice.
func Handled(records int, workers ...*Worker) Condition {
	return Condition{fmt.Sprintf("%d handled records", records), func() (bool, string) {
		n := uint64(0)
		for _, w := range workers {
			n += w.Consumer.Counts().RecordsHandled
		}
		return n >= uint64(max(records, 0)), fmt.Sprintf("%d are", n)
	}}
}

// AtTip returns the condition that the workers have handled all records of a stream. The workers
// must hold all open shards. With [weir.Latest] and [weir.At], records before the start do not
// count.
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

// atTip reports whether all records are handled. held contains the positions of the shards that
// workers hold.
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

// past reports whether a worker at this position has handled the record, or skips it.
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
