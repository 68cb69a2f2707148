package weir

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// Filter says which records are handled. The others are done as soon as they are read, in their
// order: the checkpoint passes them when everything before them is done. They are counted in
// [Counts].RecordsFiltered, each time that they are read, and told by [Events].Filtered. Aggregates
// are unpacked before, unless [KeepPacked] says that they are not.
type Filter struct {
	// By decides. Package filter makes one of EventBridge's patterns. nil, the default, handles all
	// records.
	By Matcher
	// NotJSON says what becomes of a record of which By cannot tell whether it matches:
	// [PassNotJSON] (the default), [DropNotJSON] or [FailNotJSON].
	NotJSON NotJSON
}

// Matcher decides which records are handled. A *filter.Filter is one.
type Matcher interface {
	// Match reports whether a record is to be handled. isJSON is false if that cannot be told,
	// because the payload is not JSON and the answer depends on it. It is called concurrently, and
	// must neither keep nor change data. It has to give the same answer each time. A panic is a
	// failure of the handler at that record, and Match is called again for the next attempt; a
	// function that pulls gets the record.
	Match(data []byte, partitionKey string, arrival time.Time) (matches, isJSON bool)
}

// NotJSON says what becomes of records that are not JSON although a [Filter] is about that. They
// are counted in [Counts].RecordsNotJSON, whatever it is.
type NotJSON int

const (
	// PassNotJSON hands them to the handler. The default.
	PassNotJSON NotJSON = iota
	// DropNotJSON drops them, as AWS Lambda does.
	DropNotJSON
	// FailNotJSON hands them to nobody. Each is a failure of the handler at that record: it is
	// tried again for ever, or given up as one that the handler rejects if [GiveUp].To is set. It
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
		bad("Options.Filter.By is nil although Options.Filter.NotJSON is set: say what the filter is")
	}
}

// filtering filters the records of one page.
type filtering struct {
	loop  *shardLoop
	count Filtered
	// bytes of data since records were detached
	kept, dropped int
}

// filtering is that of a page; nil if nothing is filtered.
func (l *shardLoop) filtering() *filtering {
	if l.in.opts.Filter.By == nil {
		return nil
	}
	return &filtering{loop: l}
}

// passes reports whether a record goes on. It marks it if the handler must not get it.
func (f *filtering) passes(r *source.Record) bool {
	if f == nil {
		return true
	}
	pass := true
	matches, isJSON, err := f.loop.in.opts.Filter.match(r)
	switch {
	case err != nil:
		f.loop.in.logPanic(f.loop.repeated(), "the filter panicked on a record; the record counts as a failure of the handler, or is delivered if the shard is pulled", err)
		r.Failed = !f.loop.pulls()
	case isJSON:
		if pass = matches; !pass {
			f.count.Dropped++
		}
	default:
		f.count.NotJSON++
		switch f.loop.in.opts.Filter.NotJSON {
		case DropNotJSON:
			pass = false
		case FailNotJSON:
			r.Failed = true
		}
	}
	if pass {
		f.kept += len(r.Data)
	} else {
		f.dropped += len(r.Data)
	}
	return pass
}

// filteredTimeout bounds looking for a record that passes, in what a sink has not of a shard: all
// that is dropped there has to be read.
const filteredTimeout = 10 * time.Minute

// keepsSome reports whether a page has a record after a position that passes. It counts none.
func (l *shardLoop) keepsSome(page *source.Page, own shard.HashRange, at Position) bool {
	unpack := newUnpacker(l.in.opts.Aggregates, l.term.Lease.Stream, l.term.Lease.Shard, own, at)
	defer unpack.release()
	unpack.filter = l.filtering()
	for i := range page.Records {
		for range unpack.records(&page.Records[i]) {
			return true
		}
	}
	return false
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

// detach copies what the records of a run refer to, if they are a small part of what was read, so
// that they do not keep the rest in memory.
func (f *filtering) detach(run []source.Record) {
	if f == nil {
		return
	}
	small := f.dropped > f.kept
	f.kept, f.dropped = 0, 0
	if !small {
		return
	}
	names, bytes := strings.Builder{}, 0
	for i := range run {
		bytes += len(run[i].Data)
		names.WriteString(run[i].SequenceNumber)
		names.WriteString(run[i].Key)
	}
	text, data := names.String(), make([]byte, 0, bytes)
	for i := range run {
		r := &run[i]
		number, key := len(r.SequenceNumber), len(r.Key)
		r.SequenceNumber, r.Key, text = text[:number], text[number:number+key], text[number+key:]
		at := len(data)
		data = append(data, r.Data...)
		r.Data = data[at:len(data):len(data)]
	}
}

// tell counts and tells what was filtered of a page.
func (f *filtering) tell() {
	if f == nil || f.count == (Filtered{}) {
		return
	}
	l, count := f.loop, f.count
	dropped := count.Dropped
	if l.in.opts.Filter.NotJSON == DropNotJSON {
		dropped += count.NotJSON
	}
	l.in.counted.recordsFiltered.Add(uint64(dropped))
	l.in.counted.recordsNotJSON.Add(uint64(count.NotJSON))
	count.Stream, count.Shard = l.term.Lease.Stream, l.term.Lease.Shard
	emit(l.in, l.in.opts.Events.Filtered, count)
}

// cutFailed has a record that the handler must not get be tried by itself, and what is before it
// handed over first. It is called with the lock held.
func (d *delivery) cutFailed() {
	limit := d.limit()
	i := slices.IndexFunc(d.kept.records[d.done:limit], func(r source.Record) bool { return r.Failed })
	if i < 0 {
		return
	}
	if cut := d.done + max(i, 1); cut < limit {
		d.ends = append(d.ends, cut)
	}
}

// passesNow reports whether the handler gets a batch. It does not get a batch of a single record at
// which the filter failed before, if the filter now fails again or drops the record.
func (d *delivery) passesNow(b *Batch) (bool, error) {
	if len(b.Records) != 1 || !b.Records[0].failed {
		return true, nil
	}
	return d.loop.in.opts.Filter.again(&d.kept.records[d.head])
}

// passed notes that everything before a position is done when what was read before it is: handled,
// waiting for a full batch, or with a function that pulls. So what was dropped there is, too.
func (l *shardLoop) passed(upTo Position) {
	switch {
	case l.handles != nil && l.handles.gathered.waits():
		l.handles.gathered.upTo = upTo
	case !l.pulls():
		l.advance(upTo)
	case l.handles.pull != nil && l.in.opts.Filter.By != nil:
		pull := l.handles.pull
		pull.trail.Store(&trail{after: pull.handed, upTo: upTo})
		l.term.Advance(pull.past(l.term.At()))
	}
}

// trail is what was dropped after the last record that a function which pulls got.
type trail struct{ after, upTo Position }

// handedOver notes the last record that the function gets.
func (p *puller) handedOver(r *source.Record) {
	p.handed = positionAfter(r.SequenceNumber, r.Done)
}

// past is how far everything is done when the function has done everything before a position. It
// may be called by several goroutines at a time.
func (p *puller) past(done Position) Position {
	if t := p.trail.Load(); t != nil && done.Compare(t.after) >= 0 && done.Compare(t.upTo) < 0 {
		return t.upTo
	}
	return done
}
