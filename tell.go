package weir

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/guard"
	"github.com/weir-go/weir/internal/notify"
)

const (
	// queueRoom is for how many events and log records there is room until some are dropped.
	queueRoom = 1024
	// hooksMayTake is how long hooks and the logger may still be at work when everything else has
	// ended.
	hooksMayTake = 5 * time.Second
)

// telling is a run's queue of events. The queue's goroutine calls the hooks and the logger.
type telling struct {
	queue    *notify.Queue
	hooked   context.Context // of the hooks
	repeats  *slog.Logger    // Options.Logger, which limits repeated lines
	dropping atomic.Bool     // events are being dropped, and a log line said so
	gone     sync.Map        // streams by name, and when it was logged that they do not exist
	panics   sync.Map        // by PanicError.Who: the last panic logged with its stack
}

// stateKey identifies a state. Of the waiting changes with the same stateKey the latest counts.
type stateKey struct{ kind, stream, shard string }

// event is a pointer to what a hook of [Events] gets.
type event[E any] interface {
	*E
	// stamp sets the time of the event. It returns the stateKey of a change of state, and the zero
	// stateKey for other events.
	stamp(at time.Time) stateKey
}

// emit puts a call of a hook into the queue of the run. It does nothing if the hook is nil.
func emit[E any, P event[E]](r *run, hook func(context.Context, E), e E) {
	if hook == nil {
		return
	}
	told := e // a copy on the heap, which an event without a hook must not cost
	key := P(&told).stamp(time.Now())
	call := func() { hook(r.hooked, told) }
	if key == (stateKey{}) {
		r.drops(r.queue.Add(notify.Detail, nil, call))
	} else {
		r.queue.Add(notify.State, key, call)
	}
}

// startTelling starts the goroutine that calls hooks and the logger. stop waits for it, and fails
// with [ErrAbandoned].
func (r *run) startTelling(ctx context.Context) (stop func() error) {
	values, end := context.WithCancel(context.WithoutCancel(ctx))
	r.queue = notify.New(queueRoom)
	c := r.consumer
	c.mu.Lock()
	c.queues[r.queue] = struct{}{}
	c.mu.Unlock()
	to := r.opts.Logger
	r.opts.Logger = r.queue.Logger(values, r.opts.Logger.Handler()).With("app", r.opts.App, "worker", r.opts.Worker)
	r.repeats = r.queue.Repeats(r.opts.Logger)
	r.hooked = values
	go r.queue.Run(func(err error) { r.hookPanicked(to, err) })
	return func() error {
		defer end()
		r.queue.Flush()
		made := r.queue.Close(hooksMayTake)
		c.mu.Lock()
		c.eventsMissed.Add(r.queue.Counts())
		delete(c.queues, r.queue)
		c.mu.Unlock()
		if !made {
			return fmt.Errorf("%w: a function of Options.Events, or the logger, does not return", ErrAbandoned)
		}
		return nil
	}
}

// hookPanicked logs that a hook panicked. It is called by the queue's goroutine, as the logger is,
// and does not go through the queue, which may be closed by then.
func (r *run) hookPanicked(to *slog.Logger, err error) {
	var p *notify.Panic
	if errors.As(err, &p) {
		err = &PanicError{"a function of Options.Events", p.Value, p.Stack}
	}
	_ = contained("the logger", func() error { // its panic can be reported nowhere
		r.logPanic(to.With("app", r.opts.App, "worker", r.opts.Worker), "a function of Options.Events, or the logger, panicked; the event or log line is not delivered again", err)
		return nil
	})
}

// log is the logger of what concerns the shard: every line says which, and with which epoch.
func (l *shardLoop) log() *slog.Logger {
	of := l.term.Lease
	return l.in.opts.Logger.With("stream", of.Stream, "shard", of.Shard, "epoch", of.Epoch)
}

// repeated returns the logger for lines that many shards or attempts log for one cause. It logs
// only some of the repeated lines, with their number.
func (l *shardLoop) repeated() *slog.Logger {
	of := l.term.Lease
	return l.in.repeats.With("stream", of.Stream, "shard", of.Shard, "epoch", of.Epoch)
}

// logPanic logs an error of the user's code; of a panic with the stack, unless the one before was
// the same.
func (r *run) logPanic(to *slog.Logger, what string, err error, args ...any) {
	args = append(args, "err", err)
	if stack := r.newStack(err); stack != "" {
		args = append(args, "stack", stack)
	}
	to.Error(what, args...)
}

// newStack returns the stack of a panic that err wraps, if the last one of the same function had
// another text.
func (r *run) newStack(err error) string {
	var p *PanicError
	if inner := (*guard.Panic)(nil); errors.As(err, &inner) { // such as one on a store's goroutine
		p = &PanicError{err.Error(), inner.Value, inner.Stack}
	} else if !errors.As(err, &p) {
		return ""
	}
	text := p.Error()
	if last, some := r.panics.Swap(p.Who, text); some && last == text {
		return ""
	}
	return p.Stack
}

// drops logs that events are dropped, once until the queue was empty again.
func (r *run) drops(told bool) {
	if told || !r.dropping.CompareAndSwap(false, true) {
		return
	}
	before := r.queue.Counts().Dropped
	r.opts.Logger.Warn("functions of Options.Events, or the logger, cannot keep up: detail events are dropped; " +
		"Consumer.Counts has exact numbers")
	// false again when the events that wait now were delivered
	r.queue.Add(notify.State, stateKey{kind: "dropping"}, func() {
		r.dropping.Store(false)
		r.opts.Logger.Log(context.Background(), slog.LevelInfo, "events are delivered again",
			"dropped", r.queue.Counts().Dropped-before)
	})
}

// Changes of state.

func (e *LeaseTaken) stamp(t time.Time) stateKey {
	e.Time = t
	return stateKey{"taken", e.Stream, e.Shard}
}
func (e *LeaseEnded) stamp(t time.Time) stateKey {
	e.Time = t
	return stateKey{"ended", e.Stream, e.Shard}
}
func (e *PositionExpired) stamp(t time.Time) stateKey {
	e.Time = t
	return stateKey{"expired", e.Stream, e.Shard}
}
func (e *ReadingChanged) stamp(t time.Time) stateKey {
	e.Time = t
	return stateKey{"reading", e.Stream, e.Shard}
}
func (e *Stalled) stamp(t time.Time) stateKey {
	e.Time = t
	return stateKey{"stalled", e.Stream, e.Shard}
}
func (e *Suspected) stamp(t time.Time) stateKey {
	e.Time = t
	return stateKey{"suspected", e.Stream, e.Shard}
}
func (e *StoreFailed) stamp(t time.Time) stateKey {
	e.Time = t
	return stateKey{"store", string(e.Op), ""}
}
func (e *Leading) stamp(t time.Time) stateKey { e.Time = t; return stateKey{kind: "leading"} }

// Events of detail.

func (e *Read) stamp(t time.Time) stateKey            { e.Time = t; return stateKey{} }
func (e *BatchBegins) stamp(t time.Time) stateKey     { e.Time = t; return stateKey{} }
func (e *BatchHandled) stamp(t time.Time) stateKey    { e.Time = t; return stateKey{} }
func (e *CheckpointSaved) stamp(t time.Time) stateKey { e.Time = t; return stateKey{} }
func (e *Unpacked) stamp(t time.Time) stateKey        { e.Time = t; return stateKey{} }
func (e *Filtered) stamp(t time.Time) stateKey        { e.Time = t; return stateKey{} }
func (e *HandlerFailed) stamp(t time.Time) stateKey   { e.Time = t; return stateKey{} }
func (e *GivenUp) stamp(t time.Time) stateKey         { e.Time = t; return stateKey{} }
func (e *GiveUpHeld) stamp(t time.Time) stateKey      { e.Time = t; return stateKey{} }
func (e *LettersFailed) stamp(t time.Time) stateKey   { e.Time = t; return stateKey{} }
func (e *ReadFailed) stamp(t time.Time) stateKey      { e.Time = t; return stateKey{} }
