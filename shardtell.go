package weir

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/shard"
)

// The counters, logs and events of a shardLoop.

// tellRead reports a page before it is handled.
func (l *shardLoop) tellRead(page *source.Page) {
	n := len(page.Records)
	if n == 0 && !page.End {
		return
	}
	l.in.counted.reads.Add(1)
	l.in.counted.recordsRead.Add(uint64(n))
	l.in.counted.bytesRead.Add(uint64(page.Bytes))
	key := l.term.Lease.Key
	emit(l.in, l.in.opts.Events.Read, Read{Stream: key.Stream, Shard: key.Shard, Records: n, Bytes: page.Bytes, Took: page.Took, Behind: page.Behind, End: page.End})
}

// tellBegins reports a call of the handler.
func (l *shardLoop) tellBegins(d *handover, records int) {
	d.enter(ShardHandling, d.Attempts, d.Err)
	emit(l.in, l.in.opts.Events.BatchBegins, BatchBegins{Stream: d.From.Stream, Shard: d.From.Shard, Records: records, Attempt: d.Attempts + 1})
}

// shardIsGone reports a shard that has left the stream, and ends it.
func (l *shardLoop) shardIsGone(err error) error {
	l.log().Error("a shard expired before it was read to its end; its unread records are lost, and reading continues with its children",
		"seq", l.term.At())
	gone := new(streams.GoneError)
	_ = errors.As(err, &gone) // nothing else wraps it
	return l.term.Finish(l.term.Context(), gone.Children)
}

// absentPause bounds the pause between two reads of a stream that does not exist: all its shards
// ask, and say so.
const absentPause = 10 * time.Second

// awaitStream waits until the stream may be there again, which does not exist, and reports whether
// to read on.
func (l *shardLoop) awaitStream(err error) bool {
	l.absent = min(l.absent+1, 30)
	l.in.streamGone(l.term.Lease.Stream, err)
	pause := retry.Pause(l.in.opts.IdleInterval, max(absentPause, l.in.opts.IdleInterval), int(l.absent))
	l.Failed(err, false, pause)
	return retry.Wait(l.term.Reading(), pause) == nil
}

// streamIsThere notes that the stream exists.
func (l *shardLoop) streamIsThere() {
	if l.absent > 0 {
		l.absent = 0
		l.in.streamBack(l.term.Lease.Stream)
	}
}

// What follows a failure of the handler.
const (
	failedAgain    = "the handler failed; its unfinished records will be handled again"
	failedInParts  = "the handler failed; its unfinished records will be handled again at once, in smaller batches"
	failedForGood  = "the handler failed; the failed records are dead-lettered"
	failedWhenDone = "the handler returned an error for a finished batch; no record will be handled again"
)

// handlerFailed reports a failure and the step that follows after a pause.
func (l *shardLoop) handlerFailed(d *handover, what string, err error, next time.Duration) {
	l.in.counted.handlerFailures.Add(1)
	records, first, last := d.Rest()
	if what != failedWhenDone {
		l.failsHere(d, false)
	}
	f := &d.failing
	if d.key == nil {
		f = l.failsAt(l.term.At())
	}
	l.tellFailure(what, f, HandlerFailed{Records: records, First: first, Last: last, Err: err, Attempt: d.Attempts, Next: next})
}

// failing is the history of the user's code's failures at one position.
type failing struct {
	at    Position
	pulls int  // of ShardHandlers.Pull
	stack bool // of a panic, was logged
}

// failsAt returns the history of failures at a position, or nil for a position before the last one.
func (l *shardLoop) failsAt(at Position) *failing {
	if l.failing == nil || l.failing.at != at {
		l.failing = &failing{at: at}
	}
	return l.failing
}

// tellFailure logs and reports a failure of the user's code. It logs the stack of a panic once
// until there is progress, because it is the same at each attempt.
func (l *shardLoop) tellFailure(what string, f *failing, e HandlerFailed) {
	key := l.term.Lease.Key
	e.Stream, e.Shard, e.At = key.Stream, key.Shard, l.term.At()
	args := []any{"seq", e.At}
	if e.First != "" {
		args = append(args, "records", e.Records, "first", e.First, "last", e.Last)
	}
	args = append(args, "attempt", e.Attempt, "next", e.Next.Round(time.Millisecond), "err", e.Err)
	var panicked *PanicError
	if errors.As(e.Err, &panicked) && !f.stack {
		f.stack = true
		args = append(args, "stack", panicked.Stack)
	}
	l.repeated().Warn(what, args...)
	emit(l.in, l.in.opts.Events.HandlerFailed, e)
}

// The loop is its feed's [source.Owner].

// Context ends reading.
func (l *shardLoop) Context() context.Context { return l.term.Context() }

// Calls returns the caller that all shards share.
func (l *shardLoop) Calls() context.Context { return l.term.Trust() }

// Wake wakes the loop.
func (l *shardLoop) Wake() { l.term.Wake() }

// Failed reports a failed read that is tried again.
func (l *shardLoop) Failed(err error, throttled bool, next time.Duration) {
	refused := errors.Is(err, source.ErrNoPosition)
	known := throttled || refused || errors.Is(err, streams.ErrNoStream)
	// an iterator that has expired meanwhile says nothing about what is wrong
	expired := streams.Code(err) == "ExpiredIteratorException"
	l.note(func(n *notes) { n.forAll = known || n.forAll && expired })
	level, what := l.in.opts.Logger.Debug, "reading failed; trying again"
	// With another policy, Expired names the position at which reading continues. A stream that was
	// deleted and created again also refuses positions, until the leader has listed it and taken
	// the leases.
	if refused && l.in.opts.Expired == FailExpired && l.needsReset(time.Now()) {
		level = l.in.opts.Logger.Error // once: a person is needed
		what = `the service refuses the position of a shard, so it is not read: move it with "weir group reset", or set Options.Expired`
	}
	level(what, "stream", l.term.Lease.Stream, "shard", l.term.Lease.Shard,
		"throttled", throttled, "next", next.Round(time.Millisecond), "err", err)
	if streams.Throttled(err) { // a subscription that waits for the one before it is not
		l.in.sampler.Throttle(l.term.Lease.Key, next)
	}
	if throttled {
		l.in.counted.readsThrottled.Add(1)
	} else {
		l.in.counted.readsFailed.Add(1)
	}
	emit(l.in, l.in.opts.Events.ReadFailed, ReadFailed{
		Stream: l.term.Lease.Stream, Shard: l.term.Lease.Shard, Err: err, Throttled: throttled, Next: next,
	})
	if at := l.refusedAt(); refused && l.in.opts.Expired == FailExpired && at.Kind() == shard.Sequence && !l.refuses().stays {
		l.mu.Lock()
		l.refusal.stays = true
		l.mu.Unlock()
		emit(l.in, l.in.opts.Events.PositionExpired, PositionExpired{Stream: l.term.Lease.Stream, Shard: l.term.Lease.Shard, Position: at, Next: at, Err: err})
	}
}

// needsReset reports once that a position was refused for longer than the leader needs to notice a
// recreated stream.
func (l *shardLoop) needsReset(now time.Time) bool {
	r := l.refuses()
	if r.since == 0 {
		r.since = mono.Of(now)
	}
	if r.told || now.Sub(r.since.Time()) < l.in.opts.ListInterval {
		return false
	}
	r.told = true
	return true
}

// refuses returns the loop's refusal and makes it if it is nil. Only the reading goroutine calls
// it.
func (l *shardLoop) refuses() *refusal {
	if l.refusal == nil {
		l.mu.Lock()
		l.refusal = new(refusal)
		l.mu.Unlock()
	}
	return l.refusal
}

// refusedAt is the position that the service refuses, if it refuses one: the sink's, where reading
// began at that and has not come further than the checkpoint.
func (l *shardLoop) refusedAt() Position {
	at := l.term.At()
	if l.in.shards == nil {
		return at
	}
	if start := l.handles.start; start.Kind() == shard.Sequence && start.Compare(at) < 0 {
		return start
	}
	return at
}

// Expired reports records that have left the stream, or may have, and were not handled.
func (l *shardLoop) Expired(e source.Expiry) {
	key := l.term.Lease.Key
	args := []any{"seq", e.At, "resumes", e.Next}
	if !e.From.IsZero() {
		args = append(args, "from", e.From)
	}
	if !e.To.IsZero() {
		args = append(args, "to", e.To)
	}
	if e.Err != nil {
		args = append(args, "err", e.Err)
	}
	l.log().Error("records expired before they were handled, or may have; Options.Expired decides what happens next", args...)
	emit(l.in, l.in.opts.Events.PositionExpired, PositionExpired{Stream: key.Stream, Shard: key.Shard, Position: e.At, Next: e.Next, From: e.From, To: e.To, Err: e.Err})
}
