// Package shardrun handles one shard for one term: it reads records, passes them to the user's
// code, and moves the checkpoint.
//
// A [Loop] takes page after page. Each step returns a [next], which says what follows. These are
// the stages:
//
//	Pages      polling or fan-out brings a page
//	batches    it is unpacked, filtered, and cut or gathered (gatherer)
//	Handover   each batch goes to the user's code until all of it is done; [failure.Decide] says
//	           what follows a call, and a trial handles records that may kill their workers
//	keys       or the records of each partition key go to the user's code in parallel
//	checkpoint group.Term saves it with the next heartbeat
//
// The package does not import package weir. It reaches the user's code through the interfaces User,
// Handler and Code, and the run that all shards share through the interface Run.
package shardrun

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/batch"
	"github.com/weir-go/weir/internal/delivery"
	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/jitter"
	"github.com/weir-go/weir/internal/keyed"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
)

// Loop handles the shard of one held lease. It reads a page, hands it to the user's code until that
// succeeds, moves the checkpoint, and repeats this until the shard or the term ends.
//
// A worker may have thousands of loops, most of them idle, so a Loop is small.
type Loop struct {
	in     *Shared
	term   *group.Term
	source Pages
	status
	session *session // nil before the first record; set by the loop's goroutine
	failing *failing // nil before the user's code failed; of its caller's goroutine
	refusal *refusal // nil before a position was refused; set by the goroutine that reads

	// Only the loop's goroutine uses these.
	begun  bool
	absent uint8 // reads in a row that failed because the stream does not exist
}

// New makes the loop of a term. If all shards have the same handler, reading begins at the lease's
// position. Otherwise the loop first opens a handler, and a sink may determine the position where
// reading begins.
func New(in *Shared, t *group.Term) *Loop {
	l := &Loop{in: in, term: t}
	l.rate = supervise.RateOf(t.StoredRate(), time.Now())
	if !in.PerTerm {
		l.source = in.Run.Pages(l, t.Lease.Position)
	}
	return l
}

// next is the result of a step of a loop. It determines what the loop does next.
type next struct {
	then then
	err  error // a StopError with stops; a pull.EndedError with again
}

type then uint8

const (
	goOn  then = iota
	parks      // there is nothing to handle
	over       // the term is over, or another worker is to have the lease
	again      // the function that pulls has returned, and is to be called again
	stops      // the user's code ends Run
)

// stopsWith returns the result of a step in which the user's code ended Run with err. For a nil
// err, it returns goOn.
func stopsWith(err error) next {
	if err == nil {
		return next{}
	}
	return next{then: stops, err: err}
}

// Resume continues a loop that has parked, as Read does.
func (l *Loop) Resume() error { return l.Read() }

// Read reads and handles the shard. It returns nil when the term is over or the shard has ended. If
// there is nothing to handle, it parks the loop and returns the result of [group.Term.Park]. If the
// user's code ends Run, it returns the [StopError].
func (l *Loop) Read() (err error) {
	parked := false
	defer func() {
		if !parked {
			l.stopReading()
			l.close(err != nil)
			l.in.Run.End(l)
		}
	}()
	if !l.begun && !l.in.Run.Await(l) {
		return nil
	}
	l.begun = true
	for {
		if l.in.PerTerm && l.session == nil {
			if n := (opening{l}).open(); n.then != goOn {
				return stopIn(n.err)
			}
		}
		n := l.read()
		if n.then == parks {
			if parked, n = l.keys().leave(); parked {
				return l.term.Park(l)
			}
		}
		if stop := l.keys().end(); stop != nil {
			n = stopsWith(stop)
		}
		if n.then == again {
			n = l.pullAgain(n.err)
		} else if n.then != stops {
			return nil
		}
		if n.then != goOn {
			return stopIn(n.err)
		}
	}
}

// read takes pages until there is nothing to handle, the shard has ended, or the term is over.
func (l *Loop) read() next {
	for {
		if err := l.session.pulling().Returned(); err != nil {
			return next{then: again, err: err}
		}
		if l.waiting().isDue() {
			if n := l.flush(time.Time{}); n.then != goOn {
				return n
			}
		}
		page, got, err := l.nextPage()
		switch {
		case got == aPage:
			l.streamIsThere()
			if n := l.take(page, time.Time{}); n.then != goOn {
				return n
			}
			continue
		case got != aFailure:
			called, n := l.callIdle()
			if n.then != goOn {
				return n
			}
			if !called && got == nothing {
				return next{then: parks}
			}
			continue
		case l.term.Reading().Err() != nil:
			return l.last()
		}
		if n := l.flush(time.Time{}); n.then != goOn {
			return n
		}
		if errors.Is(err, streams.ErrNoShard) {
			return l.shardIsGone(err)
		}
		// The stream is gone. It may come back, or an operator may stop the application.
		if !l.awaitStream(err) {
			return next{then: over}
		}
	}
}

// last makes one more read when another worker is to get the lease, and handles the result. Without
// this read, records that have arrived since the previous read would wait for the next owner. The
// read may take almost one heartbeat interval.
func (l *Loop) last() next {
	if l.in.Parallel() { // running calls would have to end first
		return next{then: over}
	}
	beat := l.in.Times.Heartbeat
	ctx, cancel := context.WithTimeout(l.term.Context(), beat-jitter.Of(l.term.Lease.Shard, beat/16+1))
	page, err := l.source.Last(ctx)
	cancel()
	until := time.Now().Add(beat)
	if err == nil {
		if n := l.take(page, until); n.then != goOn {
			return n
		}
	}
	if n := l.flush(until); n.then != goOn { // also of a page without records
		return n
	}
	return next{then: over}
}

// take handles a page in batches. If another worker is to get the lease, take begins no further
// batch after the time until: the batches of a page could take longer than the time for a handoff
// or a stop.
func (l *Loop) take(page source.Page, until time.Time) next {
	if l.in.Parallel() && trialOf(l) == nil {
		return l.keys().take(page)
	}
	defer l.rest()
	defer page.Release()
	l.tellRead(&page)
	end, some := l.noteArrival(&page)
	if s := l.session; s != nil && page.Behind == 0 && !page.Tip.IsZero() {
		s.idle.tip = page.Tip
	}
	if n := l.readyForRepeats(&page); n.then != goOn {
		return n
	}
	unpack := l.unpacker()
	defer unpack.Release()
	defer tellFiltered(l, unpack.Filter)
	own := unpack.Unpacks(&page) // of memory that it uses again
	if !l.in.Reuse {
		page.Keep()
	}
	begun, gathers := false, l.in.BatchWait > 0 && trialOf(l) == nil
	for run, isLast := range unpack.Runs(&page, l.size()) {
		if begun && l.wantedBack(until) {
			return next{then: over}
		}
		begun = true
		if !l.in.Reuse {
			unpack.Filter.Detach(run)
		}
		var n next
		if gathers {
			n = l.gathers().add(run, &page, own, isLast, until)
		} else {
			n = l.handOver(run, own, delivery.Batch{Behind: page.Behind, End: page.End && isLast}, until)
		}
		if n.then != goOn {
			return n
		}
	}
	l.tellUnpacked(unpack)
	if some { // also past what was dropped
		l.passed(end)
	}
	if page.End {
		return l.finish(&page)
	}
	l.noteHandled(0, time.Now())
	return next{}
}

// finish saves that the shard was handled to its end.
func (l *Loop) finish(page *source.Page) next {
	l.enter(health.Ended, 0, nil)
	_ = l.term.Finish(l.term.Context(), page.Children) // otherwise the next owner does it
	return next{then: over}
}

// handOver hands a batch to the handler until all of it is done. own is set if the memory of run is
// reused, so that the handler must get a copy.
func (l *Loop) handOver(run []source.Record, own bool, b delivery.Batch, until time.Time) next {
	return newHandover(l, run, own, b, until).deliver()
}

// size returns the limits of a batch.
func (l *Loop) size() batch.Size { return batch.Size{Records: l.in.Batch, Bytes: l.in.BatchBytes} }

// unpacker returns an unpacker for a page, which drops the records that the filter drops.
func (l *Loop) unpacker() *batch.Unpacker {
	of := &l.term.Lease
	u := batch.NewUnpacker(l.in.Aggregates, of.Stream, of.Shard, of.Range, l.start())
	u.Filter = filtering(l)
	if s := l.session; s != nil && s.numbered != nil {
		u.Repeats = s.numbered
	}
	return u
}

// wantedBack reports whether another worker is to get the lease and the time until is over.
func (l *Loop) wantedBack(until time.Time) bool {
	return l.term.Reading().Err() != nil && !time.Now().Before(until)
}

// callIdle makes an idle call of the handler if one is due, and reports whether it made one.
func (l *Loop) callIdle() (called bool, n next) {
	s := l.session
	if s == nil || s.idle.every == 0 || l.waiting().waits() {
		return false, next{}
	}
	s.idle.stop()
	if wait := time.Until(s.idle.due); wait > 0 {
		if !l.in.FanOut { // else the wait for the next event ends
			s.idle.timer = time.AfterFunc(wait, l.term.Wake)
		}
		return false, next{}
	}
	defer l.rest()
	b := delivery.Batch{Idle: true, Tip: l.tip(), Behind: -1}
	if !b.Tip.IsZero() {
		b.Behind = 0
	}
	return true, l.handOver(nil, false, b, time.Time{})
}

// gathers returns the gatherer of the loop. It makes the gatherer if there is none.
func (l *Loop) gathers() *gatherer {
	s := l.session
	if s.gather == nil {
		g := &gatherer{loop: l}
		l.in.Budget.Open(&g.share)
		g.Gathering = batch.Gathering{Share: &g.share, Size: l.size()}
		s.gather = g
	}
	return s.gather
}

// waiting returns the gatherer of the loop, or nil.
func (l *Loop) waiting() *gatherer {
	if l.session == nil {
		return nil
	}
	return l.session.gather
}

// flush hands over the waiting records, if there are any.
func (l *Loop) flush(until time.Time) next {
	g := l.waiting()
	if !g.waits() {
		return next{}
	}
	defer l.rest()
	return g.handOver(false, until)
}

// rest sets the state of a shard whose handler has nothing to do.
func (l *Loop) rest() {
	if l.waiting().waits() {
		l.enter(health.AwaitingBatch, 0, nil)
	} else {
		l.enter(health.NoReason, 0, nil)
	}
}

// passed moves the checkpoint past the records up to a position, some of which may have been
// dropped. If earlier records wait for a full batch, or a pulling function has them, the checkpoint
// moves when those are done.
func (l *Loop) passed(upTo Position) {
	pull := l.session.pulling()
	switch {
	case l.waiting().waits():
		l.session.gather.UpTo = upTo
	case !l.in.Pulls:
		l.advance(upTo)
	case pull != nil && l.in.Drops():
		pull.Dropped(upTo)
		l.term.Advance(pull.Past(l.term.At()))
	}
}

// advance moves the checkpoint to a position. With a sink, the lease may name records that were
// dead-lettered because they killed workers, and the names count only at the checkpoint with which
// they were saved. So advance saves them again with the new checkpoint. A term that no longer
// handles records one by one drops the names, because the sink has passed those records.
func (l *Loop) advance(to Position) {
	if l.in.Sink && namesKilled(l) && to.Compare(l.term.At()) > 0 {
		d := l.term.Deaths()
		note := lease.Deaths{At: to, Count: d.Count, Record: to}
		l.term.NoteSoon(failure.WithKilled(note, failure.ParseKilled(d.Beyond), l.term.Lease.Epoch))
	}
	l.term.Advance(to)
}

// pullAgain closes the handler after a pulling function has returned, and pauses before the next
// call.
func (l *Loop) pullAgain(err error) next {
	if stop := stopIn(err); stop != nil {
		l.in.Run.Stopping()
		return stopsWith(stop)
	}
	if l.term.Context().Err() != nil {
		return next{then: over}
	}
	l.stopReading()
	l.close(true)
	f := failingAt(l, l.term.At())
	f.pulls++
	pause := retry.Pause(l.in.RetryMin, l.in.RetryMax, f.pulls)
	l.enter(health.HandlerFailed, f.pulls, err)
	l.in.Counters.HandlerFailures.Add(1)
	f.tellFailure(l, "the pulling function returned; it will get the unfinished records again",
		event.HandlerFailed{Err: err, Attempt: f.pulls, Next: pause})
	return l.pause(pause)
}

// needSession makes the session of the loop if it has none. It is for loops whose shards share one
// handler.
func (l *Loop) needSession() {
	if l.session == nil {
		l.handledBy(newSession(l, l.in.User.Shared(), l.term.Lease.Position))
	}
}

// handledBy sets the session; nil removes it.
func (l *Loop) handledBy(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = s
}

// close closes the handler of the term and removes the session. stops is set if the term ends
// because this worker stops, or if the pulling function is called again.
func (l *Loop) close(stops bool) {
	s := l.session
	if s == nil {
		return
	}
	l.enter(health.ClosingHandler, 0, nil)
	err := s.handler.Close(&handlerContext{l.term.Context(), l.in.Values}, l.endReason(stops))
	if s.gather != nil {
		s.gather.stop()
	}
	s.idle.stop()
	l.handledBy(nil)
	if err != nil {
		l.in.Run.LogPanic(l.Log(), "closing a shard's handler failed; its lease is released anyway", err)
	}
}

// endReason returns the reason why the term ends.
func (l *Loop) endReason(stops bool) event.EndReason {
	cause := context.Cause(l.term.Context())
	switch {
	case l.term.At().IsEnd():
		return event.EndFinished
	case errors.Is(cause, ErrStalled):
		return event.EndStalled
	case errors.Is(cause, group.ErrStopping), stops, l.in.Run.IsStopping():
		return event.EndStopped
	case cause != nil:
		return event.EndLost
	default:
		return event.EndHandedOff
	}
}

// pause waits. It returns early if the term ends or another worker is to get the lease.
func (l *Loop) pause(d time.Duration) next {
	if retry.Wait(l.term.Reading(), d) != nil {
		return next{then: over}
	}
	return next{}
}

// Log returns a logger whose lines name the shard and the epoch.
func (l *Loop) Log() *slog.Logger { return l.named(l.in.Log) }

// Repeated returns a logger for lines that many shards or attempts log for the same cause. It logs
// only some of them, with the number of the others.
func (l *Loop) Repeated() *slog.Logger { return l.named(l.in.Repeats) }

func (l *Loop) named(to *slog.Logger) *slog.Logger {
	of := &l.term.Lease
	return to.With("stream", of.Stream, "shard", of.Shard, "epoch", of.Epoch)
}

// keys returns the methods for keys in parallel.
func (l *Loop) keys() keys { return keys{l} }

// runnerNow returns the runner of keys, or nil, for other goroutines than the loop's.
func (l *Loop) runnerNow() *keyed.Runner {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session == nil {
		return nil
	}
	return l.session.runner
}
