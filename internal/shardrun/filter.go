package shardrun

import (
	"errors"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/batch"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

var errNotJSON = errors.New("weir: the payload is not JSON, which the filter needs")

// filter calls the user's filter for the records of a shard.
type filter struct{ *Loop }

// filtering returns the filter of a page. It returns nil if nothing is filtered.
func filtering(l *Loop) *batch.Filter {
	if !l.in.Filters {
		return nil
	}
	return &batch.Filter{By: filter{l}}
}

// Decide calls the filter for a record. Decide marks a record at which the filter fails, and with
// FailNotJSON a record that is not JSON, so that the handler does not get it. If a function pulls,
// it gets the record.
func (l filter) Decide(r *source.Record) batch.Decision {
	matches, isJSON, err := l.in.User.Match(r)
	switch {
	case err != nil:
		l.in.Run.LogPanic(l.Repeated(), "the filter panicked on a record; the record counts as failed, or is delivered if a function pulls the shard", err)
		r.Failed = !l.in.Pulls
		return batch.Pass
	case isJSON && matches:
		return batch.Pass
	case isJSON:
		return batch.Drop
	}
	switch l.in.NotJSON {
	case DropNotJSON:
		return batch.DropNotJSON
	case FailNotJSON:
		r.Failed = true
	}
	return batch.PassNotJSON
}

// tellFiltered counts and reports the filtered records of a page.
func tellFiltered(l *Loop, f *batch.Filter) {
	if f == nil || f.Dropped+f.NotJSON == 0 {
		return
	}
	dropped := f.Dropped
	if l.in.NotJSON == DropNotJSON {
		dropped += f.NotJSON
	}
	l.in.Counters.RecordsFiltered.Add(uint64(dropped))
	l.in.Counters.RecordsNotJSON.Add(uint64(f.NotJSON))
	if ev, of := l.in.Events, &l.term.Lease; ev.On() {
		ev.Emit(event.Filtered{
			Time: time.Now(), Stream: of.Stream, Shard: of.Shard,
			Dropped: f.Dropped, NotJSON: f.NotJSON,
		})
	}
}

// filteredTimeout limits the search for a record that the sink lacks and that passes the filter.
// The search has to read all dropped records before that record. Repeats are dropped, too.
const filteredTimeout = 10 * time.Minute

// keepsSome reports whether a page has a record after the position that passes the filter and is no
// repeat. It changes no counter.
func (l filter) keepsSome(page *source.Page, own shard.HashRange, at Position, seen batch.Repeats) bool {
	unpack := batch.NewUnpacker(l.in.Aggregates, l.term.Lease.Stream, l.term.Lease.Shard, own, at)
	defer unpack.Release()
	unpack.Filter, unpack.Repeats = filtering(l.Loop), seen
	return unpack.Passes(page)
}

// again calls the filter once more for a record at which the filter failed. passes reports whether
// the handler gets the record now. again returns an error if the filter fails again, or if
// FailNotJSON applies.
func (l filter) again(r *source.Record) (passes bool, err error) {
	matches, isJSON, err := l.in.User.Match(r)
	switch {
	case err != nil:
		return false, err
	case isJSON:
		return matches, nil
	case l.in.NotJSON == FailNotJSON:
		return false, l.in.User.Reject(errNotJSON)
	}
	return l.in.NotJSON == PassNotJSON, nil
}
