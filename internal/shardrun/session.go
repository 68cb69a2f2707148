package shardrun

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/backlog"
	"github.com/weir-go/weir/internal/keyed"
	"github.com/weir-go/weir/internal/lineage"
	"github.com/weir-go/weir/internal/pull"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
)

// session contains the handler of a shard and the loop's data about it. A shard that has had no
// records has no session, unless each term has its own handler.
type session struct {
	handler Handler
	from    *source.Origin
	start   Position // where reading began
	idle    idle
	gather  *gatherer // nil where batches do not wait
	// trial handles records that may have killed earlier owners. judged is set once the term has
	// decided whether it needs a trial. trial is nil before that, and if no trial is needed.
	trial  *trial
	judged bool
	known  *keyed.Known  // what the owner before had done beyond the checkpoint; nil before a look
	runner *keyed.Runner // nil if no keys are handled; guarded by the loop's lock
	done   Position      // everything before it was done when the last runner ended; zero if unknown
	// numbered recognizes repeats; nil before the first page that may have an aggregate.
	numbered *numbered
	handed   backlog.Log // what was handed over and is not saved; guarded by the loop's lock
}

// pulling returns the progress of the running PullHandler.Pull, and nil if no Pull is running.
func (s *session) pulling() *pull.Progress {
	if s == nil {
		return nil
	}
	return s.handler.Pulling()
}

// due returns the time at which the loop must act even if no page has arrived. It returns zero if
// there is no such time.
func (s *session) due() time.Time {
	switch {
	case s == nil:
		return time.Time{}
	case s.gather != nil && s.gather.Waits():
		return s.gather.Due
	}
	return s.idle.due
}

// idle decides when an idle call of the handler is due.
type idle struct {
	every time.Duration // 0 is never
	due   time.Time
	timer *time.Timer // wakes the loop; nil while the loop runs
	tip   time.Time   // when an event last said that nothing more was to be read
}

// again schedules the next idle call. It is called at the beginning and after each batch.
func (i *idle) again() {
	if i.every > 0 {
		i.due = time.Now().Add(i.every)
	}
}

// stop ends the timer.
func (i *idle) stop() {
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
}

func newSession(l *Loop, h Handler, start Position) *session {
	key := l.term.Lease.Key
	s := &session{handler: h, from: &source.Origin{Stream: key.Stream, Shard: key.Shard}, start: start}
	s.idle.every = l.in.Idle
	s.idle.again()
	return s
}

// opening makes the handler of a term.
type opening struct{ *Loop }

// open makes the term's handler. It tries again until that succeeds or the term ends.
func (l opening) open() next {
	attempt, failed := l.lastFailure()
	l.enter(health.OpeningHandler, attempt, failed)
	for attempt++; ; attempt++ {
		began := time.Now()
		behind, err := l.try(began)
		if err == nil {
			l.enter(health.NoReason, 0, nil)
			if behind {
				return next{then: over}
			}
			return next{}
		}
		if stop := stopIn(err); stop != nil {
			l.in.Run.Stopping()
			return stopsWith(stop)
		}
		if cause := context.Cause(l.term.Context()); cause != nil {
			cutShort(l.Loop, began, cause)
			return next{then: over}
		}
		if l.term.Reading().Err() != nil { // nothing was begun that had to be finished
			return next{then: over}
		}
		pause := retry.Pause(l.in.RetryMin, l.in.RetryMax, attempt)
		lookup := errors.As(err, new(*lineage.LookupError))
		// Another worker may be able to look up the position. If the failure lasts, this worker
		// releases the lease, as for a shard that it cannot read.
		if lookup {
			l.failsAgain(attempt, err)
		} else {
			l.enter(health.HandlerFailed, attempt, err)
		}
		l.in.Counters.HandlerFailures.Add(1)
		failingAt(l.Loop, l.term.At()).tellFailure(l.Loop, "could not open a shard's handler; weir retries",
			event.HandlerFailed{Err: err, Attempt: attempt, Next: pause})
		if n := l.pause(pause); n.then != goOn {
			return n
		}
		if !lookup {
			l.enter(health.OpeningHandler, attempt, err)
		}
	}
}

// try makes the term's handler. behind is set if try released the lease instead, because the sink
// lacks records of an ancestor of the shard.
func (l opening) try(began time.Time) (behind bool, err error) {
	start := l.term.At()
	if l.in.Sink {
		ctx := &handlerContext{l.term.Reading(), l.in.Values}
		at, behind, err := sink(l).start(ctx, began)
		if behind || err != nil {
			return behind, err
		}
		if !at.IsZero() {
			start = at
		}
	}
	ctx := &handlerContext{l.term.Context(), l.in.Values}
	made, err := l.in.User.Open(ctx, l.term, start)
	if err != nil {
		return false, err
	}
	l.handledBy(newSession(l.Loop, made, start))
	l.readFrom(start)
	return false, nil
}

// handlerContext is the context of a term, with the values of Run's context.
type handlerContext struct {
	context.Context
	values context.Context
}

// Value asks the term's context first, so that context.Cause finds the cause of its end.
func (c *handlerContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}
