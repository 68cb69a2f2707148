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

// hooks are the functions of [Events] as weir calls them: they put the event into the queue of the
// run and return at once. Those that the user did not set are nil, so that nothing is made for
// them.
type hooks struct {
	LeaseTaken      func(LeaseTaken)
	LeaseEnded      func(LeaseEnded)
	Read            func(Read)
	BatchBegins     func(BatchBegins)
	BatchHandled    func(BatchHandled)
	CheckpointSaved func(CheckpointSaved)
	Unpacked        func(Unpacked)
	Filtered        func(Filtered)
	HandlerFailed   func(HandlerFailed)
	GivenUp         func(GivenUp)
	GiveUpHeld      func(GiveUpHeld)
	LettersFailed   func(LettersFailed)
	Suspected       func(Suspected)
	ReadFailed      func(ReadFailed)
	PositionExpired func(PositionExpired)
	ReadingChanged  func(ReadingChanged)
	Stalled         func(Stalled)
	StoreFailed     func(StoreFailed)
	Leading         func(Leading)
}

const (
	// queueRoom is for how many events and log records there is room until some are dropped.
	queueRoom = 1024
	// hooksMayTake is how long hooks and the logger may still be at work when everything else has
	// ended.
	hooksMayTake = 5 * time.Second
)

// telling is how a run tells what happens: through a queue whose goroutine calls the hooks and the
// logger.
type telling struct {
	queue    *notify.Queue
	tell     hooks
	repeats  *slog.Logger // Options.Logger, which limits repeated lines
	dropping atomic.Bool  // events are being dropped, and a log line said so
	gone     sync.Map     // streams by name, and when it was logged that they do not exist
	panics   sync.Map     // by PanicError.Who, the text of the last panic whose stack was logged
}

// stateKey tells changes of state apart of which the latest counts.
type stateKey struct{ kind, stream, shard string }

// queued returns f as weir calls it. key is nil for events of detail.
func queued[E any](r *run, ctx context.Context, f func(context.Context, E), stamp func(*E, time.Time), key func(*E) stateKey) func(E) {
	if f == nil {
		return nil
	}
	return func(e E) {
		stamp(&e, time.Now())
		if key == nil {
			r.drops(r.queue.Add(notify.Detail, nil, func() { f(ctx, e) }))
		} else {
			r.queue.Add(notify.State, key(&e), func() { f(ctx, e) })
		}
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
	r.tell = r.hooks(values)
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
	_ = contained("the logger", func() error { // which has nobody to tell
		r.logPanic(to.With("app", r.opts.App, "worker", r.opts.Worker), "a function of Options.Events, or the logger, failed; what it was told is not told again", err)
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

// drops has it told, once until all that waits was told, that events are dropped.
func (r *run) drops(told bool) {
	if told || !r.dropping.CompareAndSwap(false, true) {
		return
	}
	before := r.queue.Counts().Dropped
	r.opts.Logger.Warn("functions of Options.Events, or the logger, do not keep up: events of detail are dropped; " +
		"Consumer.Counts has exact numbers")
	// made when what waits now was told
	r.queue.Add(notify.State, stateKey{kind: "dropping"}, func() {
		r.dropping.Store(false)
		r.opts.Logger.Log(context.Background(), slog.LevelInfo, "events are told again",
			"dropped", r.queue.Counts().Dropped-before)
	})
}

func (r *run) hooks(ctx context.Context) hooks {
	e := r.opts.Events
	of := func(kind, stream, shard string) stateKey { return stateKey{kind, stream, shard} }
	return hooks{
		LeaseTaken: queued(r, ctx, e.LeaseTaken, func(e *LeaseTaken, t time.Time) { e.Time = t },
			func(e *LeaseTaken) stateKey { return of("taken", e.Stream, e.Shard) }),
		LeaseEnded: queued(r, ctx, e.LeaseEnded, func(e *LeaseEnded, t time.Time) { e.Time = t },
			func(e *LeaseEnded) stateKey { return of("ended", e.Stream, e.Shard) }),
		PositionExpired: queued(r, ctx, e.PositionExpired, func(e *PositionExpired, t time.Time) { e.Time = t },
			func(e *PositionExpired) stateKey { return of("expired", e.Stream, e.Shard) }),
		ReadingChanged: queued(r, ctx, e.ReadingChanged, func(e *ReadingChanged, t time.Time) { e.Time = t },
			func(e *ReadingChanged) stateKey { return of("reading", e.Stream, e.Shard) }),
		Stalled: queued(r, ctx, e.Stalled, func(e *Stalled, t time.Time) { e.Time = t },
			func(e *Stalled) stateKey { return of("stalled", e.Stream, e.Shard) }),
		Suspected: queued(r, ctx, e.Suspected, func(e *Suspected, t time.Time) { e.Time = t },
			func(e *Suspected) stateKey { return of("suspected", e.Stream, e.Shard) }),
		StoreFailed: queued(r, ctx, e.StoreFailed, func(e *StoreFailed, t time.Time) { e.Time = t },
			func(e *StoreFailed) stateKey { return of("store", string(e.Op), "") }),
		Leading: queued(r, ctx, e.Leading, func(e *Leading, t time.Time) { e.Time = t },
			func(*Leading) stateKey { return of("leading", "", "") }),

		Read:            queued(r, ctx, e.Read, func(e *Read, t time.Time) { e.Time = t }, nil),
		BatchBegins:     queued(r, ctx, e.BatchBegins, func(e *BatchBegins, t time.Time) { e.Time = t }, nil),
		BatchHandled:    queued(r, ctx, e.BatchHandled, func(e *BatchHandled, t time.Time) { e.Time = t }, nil),
		CheckpointSaved: queued(r, ctx, e.CheckpointSaved, func(e *CheckpointSaved, t time.Time) { e.Time = t }, nil),
		Unpacked:        queued(r, ctx, e.Unpacked, func(e *Unpacked, t time.Time) { e.Time = t }, nil),
		Filtered:        queued(r, ctx, e.Filtered, func(e *Filtered, t time.Time) { e.Time = t }, nil),
		HandlerFailed:   queued(r, ctx, e.HandlerFailed, func(e *HandlerFailed, t time.Time) { e.Time = t }, nil),
		GivenUp:         queued(r, ctx, e.GivenUp, func(e *GivenUp, t time.Time) { e.Time = t }, nil),
		GiveUpHeld:      queued(r, ctx, e.GiveUpHeld, func(e *GiveUpHeld, t time.Time) { e.Time = t }, nil),
		LettersFailed:   queued(r, ctx, e.LettersFailed, func(e *LettersFailed, t time.Time) { e.Time = t }, nil),
		ReadFailed:      queued(r, ctx, e.ReadFailed, func(e *ReadFailed, t time.Time) { e.Time = t }, nil),
	}
}
