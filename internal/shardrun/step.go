package shardrun

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/pull"
)

// deliver hands a batch to the handler until all of it is done.
func (d *Handover) deliver() next {
	l := d.loop
	if !l.in.Pulls {
		l.term.SetMark(d)
		defer d.close()
		defer l.term.SetMark(nil)
	}
	for {
		if n := alone(d); n.then != goOn {
			return n
		}
		s := d.step(time.Now())
		if s.over || s.then != goOn {
			return s.next
		}
		if s.pause > 0 {
			if n := l.pause(s.pause); n.then != goOn {
				return n
			}
		}
	}
}

// stepped is the result of a step of a handover.
type stepped struct {
	after time.Time     // at the end, so that a caller that continues at once need not read the clock
	pause time.Duration // before the next step
	over  bool          // all of the batch is done
	next                // not goOn: there is no next step
}

// step calls the handler with the records that are not done, or stores the dead letters of records
// that are dead-lettered. began is the current time.
func (d *Handover) step(began time.Time) stepped {
	l := d.loop
	if l.term.Check(began) != nil {
		return stepped{after: began, next: next{then: over}}
	}
	if d.dying != nil {
		pause, n := d.putLetters()
		return stepped{after: time.Now(), pause: pause, next: n}
	}
	p, some := d.Next(l.in.Filters)
	if !some {
		tried(d, nil)
		d.handled(0, began)
		return stepped{after: began, over: true}
	}
	records := len(p.Records)
	d.enter(health.InHandler, d.Attempts, d.Err)
	if ev, of := l.in.Events, &l.term.Lease; ev.On() {
		ev.Emit(event.BatchBegins{
			Time: began, Stream: of.Stream, Shard: of.Shard,
			Records: records, Attempt: d.Attempts + 1,
		})
	}
	gives := l.in.Brake.Policy.On
	var worked time.Time
	if gives {
		worked = l.in.Brake.LastWorked()
	}
	blame, err := d.where(d.call(p))
	s := stepped{after: time.Now()}
	tried(d, err)
	if err == nil {
		if gives && records > 0 {
			l.in.Brake.Works(began)
		}
		s.over = d.advance(s.after.Sub(began), s.after)
		return s
	}
	cause := context.Cause(l.term.Context())
	of := failure.Result{Outcome: outcome(err), Blame: blame, Done: d.PartDone(), Pulled: l.in.Pulls, Over: cause != nil}
	switch failure.Decide(of, gives) {
	case failure.Advance: // it failed after all was done, so there is nothing to do again
		took := s.after.Sub(began)
		d.NoteFailure(err, false, s.after)
		d.failed(failedWhenDone, err, 0)
		s.after = time.Now() // so that the times of events are in their order
		s.over = d.advance(took, s.after)
	case failure.PassOn:
		d.passedOn(s.after.Sub(began), s.after)
		s.over = true
	case failure.Leave:
		if s.then = over; errors.As(err, new(*pull.EndedError)) {
			s.next = next{then: again, err: err}
		}
	case failure.Stop:
		l.in.Run.Stopping()
		s.next = stopsWith(stopIn(err))
	case failure.Abort:
		cutShort(l, began, cause)
		s.then = over
	case failure.LeaveOut:
		d.leaveOut(err, blame.Untried)
	case failure.Deny:
		s.pause = d.afterDenial(err)
	default:
		d.NoteFailure(err, blame.Named, time.Now())
		s.pause = d.afterFailure(err, blame, worked)
		s.after = time.Now()
	}
	return s
}

// outcome returns how a call of the user's code ended, according to its error.
func outcome(err error) failure.Outcome {
	switch {
	case err == nil:
		return failure.Succeeded
	case errors.Is(err, pull.ErrNext):
		return failure.AsksForNext
	case errors.Is(err, ErrForHeir):
		return failure.WantedBack
	case stopIn(err) != nil:
		return failure.StopsRun
	}
	return failure.Failed
}

// advance marks the part of the last call as done, and reports whether that was the last part.
func (d *Handover) advance(took time.Duration, now time.Time) (all bool) {
	if all = d.Advance(); all {
		d.handled(took, now)
	}
	return all
}

// handled notes and reports that all of the batch is done.
func (d *Handover) handled(took time.Duration, now time.Time) {
	l := d.loop
	if d.key == nil {
		l.session.idle.again()
	}
	if d.Idle {
		l.noteHandled(0, now)
		return
	}
	records, bytes := d.Size()
	if d.key != nil { // its span knows how far all is done
		d.complete()
	} else if at := d.Finish(); records > 0 {
		l.advance(at)
	}
	records -= d.Gone
	l.noteHandled(bytes, now)
	c := l.in.Counters
	c.BatchesHandled.Add(1)
	c.RecordsHandled.Add(uint64(records))
	c.BytesHandled.Add(uint64(bytes))
	if ev, of := l.in.Events, &l.term.Lease; ev.On() {
		ev.Emit(event.BatchHandled{
			Time: now, Stream: of.Stream, Shard: of.Shard, Records: records, Bytes: bytes,
			Behind: d.Behind, Took: took, Attempts: d.Calls,
		})
	}
}

// passedOn is called when a pulling function asks for the next batch. The batch counts as handled
// only if all of its records are done by then.
func (d *Handover) passedOn(took time.Duration, now time.Time) {
	if records, bytes := d.Size(); records == d.Done() {
		d.handled(took, now)
	} else {
		d.loop.noteHandled(bytes, now)
	}
	if d.loop.in.Reuse {
		d.close()
	}
}

// These are the log messages about failures of the handler.
const (
	failedAgain    = "the handler failed; its unfinished records will be handled again"
	failedInParts  = "the handler failed; its unfinished records will be handled again at once, in smaller batches"
	failedForGood  = "the handler failed; the failed records are dead-lettered"
	failedWhenDone = "the handler returned an error for a finished batch; no record will be handled again"
)

// failed reports a failure, and what follows it after the pause.
func (d *Handover) failed(what string, err error, pause time.Duration) {
	l := d.loop
	l.in.Counters.HandlerFailures.Add(1)
	records, first, last := d.Rest()
	if what != failedWhenDone {
		d.failsHere(false)
	}
	f := &d.failing
	if d.key == nil {
		f = failingAt(l, l.term.At())
	}
	f.tellFailure(l, what, event.HandlerFailed{
		Records: records, First: first, Last: last, Err: err, Attempt: d.Attempts, Next: pause,
	})
}

// failsHere notes the record at which the handler fails, for the shard's status. letters is set if
// dead letters could not be stored. The caller must already have entered the state that follows the
// failure.
func (d *Handover) failsHere(letters bool) {
	at := d.Failing()
	if at.Letters = letters; letters {
		at.Held = ""
	}
	if d.key != nil {
		d.key.FailsAt(at)
	} else {
		d.loop.failsHere(at)
	}
}

// cutShort reports a call that did not return within Options.Timing.StopTimeout.
func cutShort(l *Loop, began time.Time, cause error) {
	if !errors.Is(cause, group.ErrStopping) {
		return
	}
	l.Log().Warn("a handler did not finish within Options.Timing.StopTimeout; the next owner of the shard will handle the batch again",
		"since", began)
	l.in.Counters.Stalls.Add(1)
	if ev, of := l.in.Events, &l.term.Lease; ev.On() {
		ev.Emit(event.Stalled{
			Time: time.Now(), Stream: of.Stream, Shard: of.Shard, Epoch: of.Epoch,
			Reason: health.InHandler, Since: began, Err: group.ErrStopping,
		})
	}
}

// failing is the history of failures of the user's code at one position.
type failing struct {
	at    Position
	pulls int  // of the function that pulls
	stack bool // of a panic, was logged
}

// failingAt returns the history of failures at a position. It returns a new history if the last
// failure was at another position.
func failingAt(l *Loop, at Position) *failing {
	if l.failing == nil || l.failing.at != at {
		l.failing = &failing{at: at}
	}
	return l.failing
}

// tellFailure logs and reports a failure of the user's code. It logs the stack of a panic once
// until there is progress, because the stack is the same at each attempt.
func (f *failing) tellFailure(l *Loop, what string, e event.HandlerFailed) {
	e.At = l.term.At()
	args := []any{"seq", e.At}
	if e.First != "" {
		args = append(args, "records", e.Records, "first", e.First, "last", e.Last)
	}
	args = append(args, "attempt", e.Attempt, "next", e.Next.Round(time.Millisecond), "err", e.Err)
	if stack := l.in.User.PanicIn(e.Err).Stack; stack != "" && !f.stack {
		f.stack = true
		args = append(args, "stack", stack)
	}
	l.Repeated().Warn(what, args...)
	if ev, of := l.in.Events, &l.term.Lease; ev.On() {
		e.Time, e.Stream, e.Shard = time.Now(), of.Stream, of.Shard
		ev.Emit(e)
	}
}
