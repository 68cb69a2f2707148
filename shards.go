package weir

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/internal/backlog"
	"github.com/weir-go/weir/internal/batch"
	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/keyed"
	"github.com/weir-go/weir/internal/lineage"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/retry"
)

// Term is one holding of one shard's lease by this worker, from when the lease is taken until it is
// lost, handed off, given back or the shard has ended.
type Term struct {
	Stream string // the stream's name
	Shard  string // the shard's ID
	Epoch  uint64 // see [Batch]
	// From is where reading begins: the result of [ShardHandlers].Position, or the lease's
	// checkpoint.
	From Position
}

// ShardHandler handles one shard for one term.
type ShardHandler interface {
	Handler
	// Close is called once, when the term ends: after the last call of Handle has returned, and
	// before the lease goes to another worker unless it is lost already. ctx is as for Handle; it
	// may have ended. Records are handled again after Close only if they were not done.
	Close(ctx context.Context, why EndReason)
}

// ShardHandlers make a handler for each term, for handlers that keep something for each shard. Open
// or Pull is required. The functions are called from the goroutine of the shard, concurrently for
// different shards, with the values of Run's context. Their errors and panics are retried after a
// pause, as those of a handler are; [Stop] ends Run.
type ShardHandlers struct {
	// Open makes the handler of a term, before anything is read. ctx is as for Handle.
	Open func(ctx context.Context, t Term) (ShardHandler, error)

	// Pull is for handlers with their own loop: it is called when a term begins, ranges over
	// [Shard.Batches], and returns nil after the shard's end. When it returns an error, or nil
	// before the end, it is called again after a pause and gets the records that are not done from
	// the stream again.
	Pull func(ctx context.Context, s *Shard) error

	// Idle makes the loop call the handler with a batch without records, whose Idle is set, when it
	// has had no records for this time, and again after each such time; [Shard.Batches] yields it.
	// A handler that waits for the clock acts in these calls. A call that fails is repeated like
	// any other. 100 ms to 1 h; 0, the default, is never. With [FanOut] it may come up to 15 s
	// later while there is no subscription.
	Idle time.Duration

	// Position says how far a sink has got that keeps positions itself, such as a database whose
	// transactions hold both the effect of a record and its position. Optional. It is called when a
	// term begins, for the shard and then for its ancestors. ctx ends after 30 s, and when the
	// lease is wanted back. An error, a panic and a position that cannot be one of the shard are
	// retried after a pause and never read as "nowhere".
	//
	// For the shard itself, reading begins after the position that is returned. The zero Position
	// of a sink that knows nothing, and [shard.End], have it begin at the lease's checkpoint. A
	// position behind the checkpoint leaves the checkpoint as it is until handling has passed it;
	// [Options].Expired holds for one whose records have left the stream.
	//
	// An ancestor that the lease shows as read to its end is read again if its position is before
	// that end, and its descendants wait: a sink that was restored from a backup misses nothing.
	// For that the sink has to keep positions of shards that have ended: one that removes them, and
	// is restored, may miss records of their descendants. The zero Position of a shard with an
	// ancestor that the sink knows means the same as [Oldest]: the sink has no record of the shard.
	// If the sink knows no ancestor either, the lease decides: the sink is new, or removes
	// positions of shards that have ended.
	//
	// With [Options].GiveUp the sink has to keep [shard.End] when it handles a batch with
	// [Batch].End: a record that was given up at the end of a shard is not in the sink, and without
	// the end the shard is read again and again.
	Position func(ctx context.Context, stream, shard string) (Position, error)

	// KeepsRecords declares that the handlers use records of a batch after they request the next
	// batch or return. RunShards then refuses [Options].ReuseBuffers, because weir would overwrite
	// these records. Defaults to false.
	KeepsRecords bool
}

// RunShards is [Consumer.Run] with a separate handler for each term.
func (c *Consumer) RunShards(ctx context.Context, h ShardHandlers) error {
	if (h.Open == nil) == (h.Pull == nil) {
		return errors.New("weir: RunShards wants one of ShardHandlers.Open and ShardHandlers.Pull")
	}
	if err := h.check(); err != nil {
		return err
	}
	if h.KeepsRecords && c.opts.ReuseBuffers {
		return errors.New("weir: RunShards refuses Options.ReuseBuffers for handlers that keep records (ShardHandlers.KeepsRecords), because it overwrites them")
	}
	if h.Pull != nil && c.opts.Filter.NotJSON == FailNotJSON {
		return errors.New("weir: RunShards with ShardHandlers.Pull has no failures of records: Options.Filter.NotJSON must be PassNotJSON or DropNotJSON")
	}
	if h.Pull != nil && c.opts.GiveUp.To != nil {
		return errors.New("weir: with ShardHandlers.Pull, and in a loop over Records, no record fails, so none is dead-lettered: leave Options.GiveUp out")
	}
	if c.opts.Parallel.on() {
		return errors.New("weir: RunShards handles a shard's batches one after the other: use Run with Options.Parallel, or leave that out")
	}
	return c.run(ctx, nil, &h)
}

// handling has the handler of a term's records.
type handling struct {
	ShardHandler
	pull  *puller // the ShardHandler, where that is one
	from  *origin
	start Position // where reading began
	// How records are tried that may have killed owners before; nil if they did not, and before
	// judged, which says that this was looked at.
	trial    *failure.Trial
	judged   bool
	gathered *batch.Gathering // nil where batches do not wait
	share    *memory.Share    // of gathered
	flushes  *time.Timer      // wakes the loop when the batch that waits is due; nil if none does
	idle     idle
	// which records are done that the owner before had beyond the checkpoint; nil before it was
	// looked for
	known  *keyed.Known
	handed backlog.Log // handed over and not saved; guarded by the loop's lock
}

// everyShards is a handler that all shards share.
type everyShards struct{ Handler }

// Close does nothing.
func (everyShards) Close(context.Context, EndReason) {}

// open makes the term's handler, and tries again for as long as that fails. It reports whether to
// read on; otherwise the term is over, or an error ends Run.
func (l *shardLoop) open() (bool, error) {
	l.enter(ShardOpening, l.attempts(), l.lastFailure())
	for attempt := l.attempts() + 1; ; attempt++ {
		began := time.Now()
		behind, err := l.tryOpen(began)
		if err == nil {
			l.enter("", 0, nil)
			return !behind, nil
		}
		if stop := ended(err); stop != nil {
			l.in.Stopping()
			return false, stop
		}
		if cause := context.Cause(l.term.Context()); cause != nil {
			l.cutShort(began, cause)
			return false, nil
		}
		if l.term.Reading().Err() != nil { // nothing was begun that had to be finished
			return false, nil
		}
		next := retry.Pause(l.in.opts.RetryMin, l.in.opts.RetryMax, attempt)
		lookup := errors.As(err, new(*lineage.LookupError))
		// another worker may be able to: if it lasts, the lease is given up as one that cannot be
		// read
		if lookup {
			l.failsAgain(attempt, err)
		} else {
			l.enter(ShardRetrying, attempt, err)
		}
		l.openFailed(err, attempt, next)
		if retry.Wait(l.term.Reading(), next) != nil {
			return false, nil
		}
		if !lookup {
			l.enter(ShardOpening, attempt, err)
		}
	}
}

// attempts is how many calls of the user's code have failed in a row.
func (l *shardLoop) attempts() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure == nil {
		return 0
	}
	return l.failure.attempt
}

// lastFailure is the error of the last call of the user's code, nil if that did not fail.
func (l *shardLoop) lastFailure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure == nil {
		return nil
	}
	return l.failure.err
}

// tryOpen makes the term's handler. behind reports that the lease was given back instead, because
// the sink is behind in an ancestor of the shard.
func (l *shardLoop) tryOpen(began time.Time) (behind bool, err error) {
	h, key := l.in.shards, l.term.Lease.Key
	ctx := &handlerContext{l.term.Context(), l.in.values}
	start := l.term.At()
	if h.Position != nil {
		at, behind, err := l.startAtSink(&handlerContext{l.term.Reading(), l.in.values}, began)
		if behind || err != nil {
			return behind, err
		}
		if !at.IsZero() {
			start = at
		}
	}
	t := Term{Stream: key.Stream, Shard: key.Shard, Epoch: l.term.Lease.Epoch, From: start}
	made, err := h.open(ctx, t, l.term)
	if err != nil {
		return false, err
	}
	made.from, made.start = &origin{Stream: key.Stream, Shard: key.Shard}, start
	made.idle.every = h.Idle
	made.idle.again()
	l.handledBy(made)
	l.readFrom(start)
	return false, nil
}

// open makes the handler of a term.
func (h *ShardHandlers) open(ctx context.Context, t Term, of *group.Term) (*handling, error) {
	if h.Pull != nil {
		pull := startPull(ctx, h.Pull, t, of)
		return &handling{ShardHandler: pull, pull: pull}, nil
	}
	var made ShardHandler
	err := contained("ShardHandlers.Open", func() (err error) {
		made, err = h.Open(ctx, t)
		return err
	})
	if err == nil && made == nil {
		err = errors.New("weir: ShardHandlers.Open returned neither a handler nor an error")
	}
	return &handling{ShardHandler: made}, err
}

// openFailed reports a failure to open, which is tried again.
func (l *shardLoop) openFailed(err error, attempt int, next time.Duration) {
	l.in.counted.handlerFailures.Add(1)
	l.tellFailure("could not open a shard's handler; weir will retry", l.failsAt(l.term.At()), HandlerFailed{Err: err, Attempt: attempt, Next: next})
}

// close notifies the term's handler of the term's end, with the error that the reader returns.
func (l *shardLoop) close(err error) {
	if l.handles == nil {
		return
	}
	l.enter(ShardClosing, 0, nil)
	why := l.endReason(err)
	err = contained("ShardHandler.Close", func() error {
		l.handles.Close(&handlerContext{l.term.Context(), l.in.values}, why)
		return nil
	})
	l.handles.stopGathering()
	l.handles.idle.stop()
	l.handledBy(nil)
	if err != nil {
		l.in.logPanic(l.log(), "closing a shard's handler failed; its lease is released anyway", err)
	}
}

// endReason is why the term ends whose reader returns with err.
func (l *shardLoop) endReason(err error) EndReason {
	cause := context.Cause(l.term.Context())
	switch {
	case l.term.At().IsEnd():
		return EndFinished
	case errors.Is(cause, ErrStalled):
		return EndStalled
	case errors.Is(cause, ErrStopping), err != nil, l.in.isStopping():
		return EndStopped
	case cause != nil:
		return EndLost
	default:
		return EndHandedOff
	}
}

// start is where reading began.
func (l *shardLoop) start() Position {
	if l.handles == nil {
		return l.term.Lease.Position
	}
	return l.handles.start
}

// readFrom makes what pages come from.
func (l *shardLoop) readFrom(at Position) {
	made := l.in.pagesOf(l, at)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.source = made
}

// stopReading lets go of what pages come from.
func (l *shardLoop) stopReading() {
	if l.source == nil {
		return
	}
	l.source.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.source = nil
}

// pagesNow returns the source of pages, nil while the handler is opened, for other goroutines than
// the loop's.
func (l *shardLoop) pagesNow() pages {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source
}
