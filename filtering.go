package weir

import (
	"errors"
	"time"

	"github.com/weir-go/weir/internal/batch"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// Filter selects the records that are handled. The others are done as soon as they are read, in
// their order: the checkpoint passes them when everything before them is done. Each read of them
// counts in [Counts].RecordsFiltered and calls [Events].Filtered. Aggregates are unpacked before,
// unless [KeepPacked] is set.
type Filter struct {
	// By decides. Package filter makes one of EventBridge's patterns. nil, the default, handles all
	// records.
	By Matcher
	// NotJSON sets the outcome for a record that is not JSON, if By needs JSON to decide:
	// [PassNotJSON] (the default), [DropNotJSON] or [FailNotJSON].
	NotJSON NotJSON
}

// Matcher decides which records are handled. A *filter.Filter is one.
type Matcher interface {
	// Match reports whether a record is to be handled. isJSON is false if the answer depends on the
	// payload and the payload is not JSON. It is called concurrently, and must neither keep nor
	// change data. It has to give the same answer each time. A panic is a failure of the handler at
	// that record, and Match is called again for the next attempt; a function that pulls gets the
	// record.
	Match(data []byte, partitionKey string, arrival time.Time) (matches, isJSON bool)
}

// NotJSON is the outcome for records that are not JSON, if a [Filter] needs JSON to decide.
// [Counts].RecordsNotJSON counts them for each value.
type NotJSON int

const (
	// PassNotJSON hands them to the handler. The default.
	PassNotJSON NotJSON = iota
	// DropNotJSON drops them, as AWS Lambda does.
	DropNotJSON
	// FailNotJSON does not hand them over. Each counts as a failure of the handler at that record:
	// it is tried again without end, or, if [GiveUp].To is set, given up like a rejected record. It
	// cannot be used with [ShardHandlers].Pull.
	FailNotJSON
)

var errNotJSON = errors.New("weir: the payload is not JSON, which the filter needs")

// check returns what is wrong.
func (f *Filter) check(bad func(format string, args ...any)) {
	switch {
	case f.NotJSON < PassNotJSON || f.NotJSON > FailNotJSON:
		bad("Options.Filter.NotJSON %d must be PassNotJSON, DropNotJSON or FailNotJSON", f.NotJSON)
	case f.By == nil && f.NotJSON != PassNotJSON:
		bad("Options.Filter.By is nil although Options.Filter.NotJSON is set: set the filter")
	}
}

// filtering is the filter of a page; nil if nothing is filtered.
func (l *shardLoop) filtering() *batch.Filter {
	if l.in.opts.Filter.By == nil {
		return nil
	}
	return &batch.Filter{By: l}
}

// Decide says what becomes of a record. It marks it if the handler must not get it.
func (l *shardLoop) Decide(r *source.Record) batch.Decision {
	matches, isJSON, err := l.in.opts.Filter.match(r)
	switch {
	case err != nil:
		l.in.logPanic(l.repeated(), "the filter panicked on a record; the record counts as a failure of the handler, or is delivered if the shard is pulled", err)
		r.Failed = !l.pulls()
		return batch.Pass
	case isJSON && matches:
		return batch.Pass
	case isJSON:
		return batch.Drop
	}
	switch l.in.opts.Filter.NotJSON {
	case DropNotJSON:
		return batch.DropNotJSON
	case FailNotJSON:
		r.Failed = true
	}
	return batch.PassNotJSON
}

// tellFiltered counts and reports the filtered records of a page.
func (l *shardLoop) tellFiltered(f *batch.Filter) {
	if f == nil || f.Dropped+f.NotJSON == 0 {
		return
	}
	dropped := f.Dropped
	if l.in.opts.Filter.NotJSON == DropNotJSON {
		dropped += f.NotJSON
	}
	l.in.counted.recordsFiltered.Add(uint64(dropped))
	l.in.counted.recordsNotJSON.Add(uint64(f.NotJSON))
	emit(l.in, l.in.opts.Events.Filtered, Filtered{
		Stream: l.term.Lease.Stream, Shard: l.term.Lease.Shard, Dropped: f.Dropped, NotJSON: f.NotJSON,
	})
}

// filteredTimeout bounds looking for a record that passes, in what a sink has not of a shard: all
// that is dropped there has to be read.
const filteredTimeout = 10 * time.Minute

// keepsSome reports whether a page has a record after a position that passes. It counts none.
func (l *shardLoop) keepsSome(page *source.Page, own shard.HashRange, at Position) bool {
	unpack := batch.NewUnpacker(batch.Mode(l.in.opts.Aggregates), l.term.Lease.Stream, l.term.Lease.Shard, own, at)
	defer unpack.Release()
	unpack.Filter = l.filtering()
	return unpack.Passes(page)
}

// match asks the user's code. A panic of it is an error.
func (f *Filter) match(r *source.Record) (matches, isJSON bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked("Options.Filter", p)
		}
	}()
	matches, isJSON = f.By.Match(r.Data, r.Key, time.UnixMilli(r.Arrival))
	return matches, isJSON, nil
}

// again calls the filter once more for a record at which it failed, and reports whether the handler
// gets the record now. It returns an error if the record fails again.
func (f *Filter) again(r *source.Record) (passes bool, err error) {
	matches, isJSON, err := f.match(r)
	switch {
	case err != nil:
		return false, err
	case isJSON:
		return matches, nil
	case f.NotJSON == FailNotJSON:
		return false, Reject(errNotJSON)
	}
	return f.NotJSON == PassNotJSON, nil
}

// passesNow reports whether the handler gets a batch. It does not get a batch of a single record at
// which the filter failed before, if the filter now fails again or drops the record.
func (d *handover) passesNow(b *Batch) (bool, error) {
	if len(b.Records) != 1 || !b.Records[0].failed {
		return true, nil
	}
	return d.loop.in.opts.Filter.again(&d.Slice(d.Head, d.Head+1)[0])
}

// passed notes a position before which all records are done as soon as the earlier ones are that
// wait for a full batch, or that a pulling function has. This includes dropped records.
func (l *shardLoop) passed(upTo Position) {
	switch {
	case l.handles != nil && l.handles.gathered.Waits():
		l.handles.gathered.UpTo = upTo
	case !l.pulls():
		l.advance(upTo)
	case l.handles.pull != nil && l.in.opts.Filter.By != nil:
		pull := l.handles.pull
		pull.trail.Store(&trail{after: pull.handed, upTo: upTo})
		l.term.Advance(pull.past(l.term.At()))
	}
}

// trail has the records that were dropped after the last record that a pulling function got.
type trail struct{ after, upTo Position }

// handedOver notes the last record that the function gets.
func (p *puller) handedOver(r *source.Record) {
	p.handed = source.After(r.SequenceNumber, r.Done)
}

// past is how far everything is done when the function has done everything before a position. It
// may be called by several goroutines at a time.
func (p *puller) past(done Position) Position {
	if t := p.trail.Load(); t != nil && done.Compare(t.after) >= 0 && done.Compare(t.upTo) < 0 {
		return t.upTo
	}
	return done
}
