package shardrun

import (
	"slices"
	"time"

	"github.com/weir-go/weir/internal/batch"
	"github.com/weir-go/weir/internal/delivery"
	"github.com/weir-go/weir/internal/keyed"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/lease"
)

// keys handles the partition keys of a shard in parallel. Its [keyed.Runner] exists while the shard
// has something to handle.
type keys struct{ *Loop }

// make makes a runner for a shard that has something to handle.
func (l keys) make() *keyed.Runner {
	l.needSession()
	in := l.in
	r := keyed.New(keyed.Config{
		Host: keyHost{l}, Keys: in.Keys, Partitions: in.Partitions, Done: l.session.done, Records: in.Batch, Bytes: in.BatchBytes, Limits: in.Span,
		Slots: in.Slots, Budget: in.Budget, From: l.session.from, Goexit: &StopError{ErrGoexit},
	})
	l.set(r)
	l.term.SetMark(r)
	return r
}

// set sets the runner; nil removes it.
func (l keys) set(r *keyed.Runner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session.runner = r
}

// runner returns the runner, or nil. The loop's goroutine calls it.
func (l keys) runner() *keyed.Runner {
	if l.session == nil {
		return nil
	}
	return l.session.runner
}

// take passes a page to the runner. At the end of the shard it waits until all records are handled.
func (l keys) take(page source.Page) next {
	defer page.Release() // added records hold their own share of the memory
	l.tellRead(&page)
	if end, some := l.noteArrival(&page); some {
		if n := l.add(&page, end); n.then != goOn {
			return n
		}
	}
	if !page.End {
		l.noteHandled(0, time.Now())
		return next{}
	}
	if r := l.runner(); r != nil {
		if drained, _ := r.Drained(l.term.Reading()); !drained {
			return next{then: over}
		}
		if stop := l.end(); stop != nil {
			return stopsWith(stop)
		}
	}
	b := delivery.Batch{Behind: page.Behind, End: true}
	if n := l.handOver(nil, false, b, time.Time{}); n.then != goOn {
		return n
	}
	return l.finish(&page)
}

// add passes the records of a page to the runner, in parts that are small compared with the span.
// The last part extends to the position end, which may be after records that are dropped.
func (l keys) add(page *source.Page, end Position) next {
	if n := l.readyForRepeats(page); n.then != goOn {
		return n
	}
	r := l.runner()
	if r == nil {
		r = l.make()
	}
	unpack := l.unpacker()
	defer unpack.Release()
	defer tellFiltered(l.Loop, unpack.Filter)
	again := unpack.Unpacks(page) // the memory of runs is used again
	page.Keep()
	if known := l.known(); known != nil {
		known.Page(time.Now())
	}
	size := min(l.in.Span.Records/8, 1000)
	added := false
	for run, isLast := range unpack.Runs(page, batch.Size{Records: size}) {
		if again {
			run = slices.Clone(run)
			unpack.Filter.Detach(run)
		}
		bytes, upTo := delivery.Mark(run, l.session.from), Position{}
		for i := range run {
			bytes += len(run[i].Key)
		}
		if isLast {
			upTo, added = end, true
		}
		if fits, _ := r.Fits(l.term.Reading(), len(run), bytes); !fits {
			return next{then: over}
		}
		l.in.Counters.RecordsSkipped.Add(uint64(r.Add(run, bytes, page.Behind, upTo, l.known())))
	}
	if !added {
		r.Pass(end)
	}
	l.tellUnpacked(unpack)
	return next{}
}

// leave ends the runner if it has nothing to handle, so that an idle shard has no runner. It
// reports whether the loop may park. A runner that still works wakes the parked loop when all
// records are done.
func (l keys) leave() (parks bool, n next) {
	r := l.runner()
	if r == nil {
		return true, next{}
	}
	done, stops := r.Park()
	if done || stops {
		n = stopsWith(l.end())
	}
	return n.then == goOn && !stops, n
}

// end waits for the running calls, passes the final progress to the term, and ends the runner. It
// returns the error with which the handler ends Run, or nil.
func (l keys) end() error {
	r := l.runner()
	if r == nil {
		return nil
	}
	err := r.End()
	l.session.done = r.DoneBefore()
	l.term.SetMark(nil)
	note := lease.Deaths{At: l.term.At(), Since: l.term.Lease.Epoch}
	note.Beyond = r.Close(byte(l.in.Aggregates), note.RoomBeyond())
	l.noteBeyond(note)
	l.set(nil)
	return err
}

// If keys are handled in parallel, records after the checkpoint may be done. When the runner ends,
// it saves a note with the lease that lists these records, so that the next owner does not handle
// them again. [lease.Lease.DeathsHere] decides how long the note counts.

// noteBeyond saves which records after the checkpoint are done.
func (l keys) noteBeyond(d lease.Deaths) {
	// While deaths are counted, owners ignore the note, so it is not saved. With a filter, the note
	// could be wrong: if the filter changes, the next owner counts other records. The same applies
	// to dropped repeats. A sink with its
	// own positions says itself which records it has; after a restore it lacks some of the noted
	// ones.
	if !l.in.Drops() && !l.in.Sink && d.Beyond != "" && !d.At.IsZero() && l.term.Deaths().Count == 0 {
		l.term.NoteSoon(d)
	}
}

// known returns which of the next records the previous owner has handled. It returns nil if that is
// unknown.
func (l keys) known() *keyed.Known {
	s := l.session
	if s.known == nil {
		s.known = new(keyed.Known)
		if d := l.term.Deaths(); !l.in.Drops() && !l.in.Sink && d.Beyond != "" && d.Count == 0 {
			*s.known = keyed.ParseBeyond(d.Beyond, byte(l.in.Aggregates))
		}
	}
	if s.known.Over() {
		return nil
	}
	return s.known
}

// keyHost calls the handler for the runner of a shard.
type keyHost struct{ keys }

// Begin prepares a batch and copies of records for a handler that may keep them.
func (h keyHost) Begin(c *keyed.Call, read []source.Record) {
	d, _ := c.Of.(*Handover)
	if d == nil {
		d = h.session.handler.Hand(&c.Delivery)
		d.loop, d.key, d.ctx = h.Loop, c, handlerContext{h.term.Context(), h.in.Values}
		c.Of = d
	}
	d.calling = calling{}
	d.Code.Keyed(read)
}

// Step calls the handler.
func (h keyHost) Step(c *keyed.Call, now time.Time) keyed.Step {
	s := c.Of.(*Handover).step(now)
	return keyed.Step{After: s.after, Pause: s.pause, Over: s.over, Ends: s.then != goOn, Stop: stopIn(s.err)}
}

// Fail ends Run.
func (h keyHost) Fail(err error) { h.term.Fail(err) }

// Wake makes the loop continue.
func (h keyHost) Wake() { h.term.Wake() }
