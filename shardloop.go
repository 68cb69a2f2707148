package weir

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/jitter"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/polling"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/shard"
)

// shardLoop takes one held lease from source to checkpoint: read a page, deliver it to the handler
// until that succeeds, note how far that is, and so on until the shard ends or the term does.
//
// Of thousands most idle, so there is little in it.
type shardLoop struct {
	in     *run
	term   *group.Term
	source pages

	mu      sync.Mutex
	state   ShardState // of handling; empty when there is nothing to handle
	since   mono.Time
	rate    supervise.Rate  // of what is handled
	failure *handlerFailure // nil while the handler's last call was no failure
	handles *handling       // nil until there is something to handle; of whoever runs the loop
	failing *failing        // nil before the user's code failed; of whoever calls it
	begun   bool            // of whoever runs it, as is
	absent  uint8           // reads in a row that were told that the stream does not exist
	// that the service refuses a position was logged; of whoever reads, as is
	refused bool
	stays   bool // that it is the checkpoint was told
	notes
}

// handlerFailure is how a handler fails, for those who look at the shard.
type handlerFailure struct {
	err     error
	attempt int
	since   mono.Time // the first failure in a row
}

// absentPause bounds the pause between two reads of a stream that does not exist: all its shards
// ask, and say so.
const absentPause = 10 * time.Second

// Resume is run.
func (l *shardLoop) Resume() error { return l.run() }

// run returns nil when the term is over or the shard has ended, and the handler's [Stop]. It parks
// while there is nothing to handle.
func (l *shardLoop) run() (err error) {
	parks := false
	defer func() {
		if !parks {
			l.stopReading()
			l.close(err)
			l.in.end(l)
		}
	}()
	if !l.begun && !l.in.await(l) {
		return nil
	}
	l.begun = true
	for {
		if l.in.shards != nil && l.handles == nil {
			if on, err := l.open(); !on {
				return err
			}
		}
		err := l.read()
		if parks = errors.Is(err, polling.ErrEmpty); parks {
			return l.term.Park(l)
		}
		pull := (*pullEnded)(nil)
		if !errors.As(err, &pull) {
			return ended(err)
		}
		if err := l.pullAgain(pull); err != nil {
			return ended(err)
		}
	}
}

// read is run until there is nothing to handle.
func (l *shardLoop) read() error {
	_, atTip := l.source.(*polling.Feed) // which knows by itself
	ahead := atTip
	for {
		if l.handles != nil {
			if p, pulls := l.handles.ShardHandler.(*puller); pulls && p.returned() != nil {
				return p.returned()
			}
		}
		if !ahead {
			l.note(func(n *notes) { n.asked = mono.Now() })
		}
		page, err := l.source.Next(l.term.Reading())
		if !ahead {
			l.note(func(n *notes) { n.asked = 0 })
		}
		switch {
		case err == nil:
			if l.absent > 0 {
				l.absent = 0
				l.in.streamBack(l.term.Lease.Stream)
			}
		case errors.Is(err, polling.ErrEmpty):
			return err
		case l.term.Reading().Err() != nil:
			if atTip {
				return l.last()
			}
			return nil
		case errors.Is(err, streams.ErrNoShard):
			l.in.opts.Logger.Error("a shard left the stream before it was read to its end; what it still held has expired",
				"stream", l.term.Lease.Stream, "shard", l.term.Lease.Shard, "position", l.term.At())
			gone := new(streams.GoneError)
			_ = errors.As(err, &gone) // nothing else wraps it
			return l.term.Finish(l.term.Context(), gone.Children)
		default: // the stream is gone; it may come back, or the application be stopped
			l.absent = min(l.absent+1, 30)
			l.in.streamGone(l.term.Lease.Stream, err)
			next := retry.Pause(l.in.opts.IdleInterval, max(absentPause, l.in.opts.IdleInterval), int(l.absent))
			l.Failed(err, false, next)
			if retry.Wait(l.term.Reading(), next) != nil {
				return nil
			}
			continue
		}
		atTip = ahead || page.Behind == 0
		l.readSome(&page)
		if over, err := l.take(page, time.Time{}); over || err != nil {
			return err
		}
	}
}

// readSome tells of what was read, before it is handled.
func (l *shardLoop) readSome(page *source.Page) {
	n := len(page.Records)
	if n == 0 && !page.End {
		return
	}
	l.in.counted.reads.Add(1)
	l.in.counted.recordsRead.Add(uint64(n))
	l.in.counted.bytesRead.Add(uint64(page.Bytes))
	if f := l.in.tell.Read; f != nil {
		key := l.term.Lease.Key
		f(Read{Stream: key.Stream, Shard: key.Shard, Records: n, Bytes: page.Bytes, Took: page.Took, Behind: page.Behind, End: page.End})
	}
}

// last handles what has come since the last read at the tip, when the lease is wanted back:
// otherwise that would have to wait for the next owner. It has one try and almost a beat's time for
// the read.
func (l *shardLoop) last() error {
	beat := l.in.opts.BeatInterval
	ctx, cancel := context.WithTimeout(l.term.Context(), beat-jitter.Of(l.term.Lease.Shard, beat/16+1))
	page, err := l.source.Last(ctx)
	cancel()
	if err != nil {
		return nil
	}
	l.readSome(&page)
	_, err = l.take(page, time.Now().Add(beat))
	return err
}

// errForHeir ends a term whose lease is wanted back before all batches of a page were begun: the
// next owner reads them again.
var errForHeir = errors.New("weir: what is left of the page is for the next owner")

// take delivers a page, in batches, and notes how far that is. It reports whether the shard has
// ended. When the lease is wanted back, and it is later than until, it begins no other batch than
// the first: a page can be of so many that they would outlast the time for a hand-off or a stop.
func (l *shardLoop) take(page source.Page, until time.Time) (over bool, err error) {
	defer l.enter("", 0, nil)
	defer page.Release()
	unpack := newUnpacker(l.in.opts.Aggregates, l.term.Lease.Range, l.start())
	defer unpack.release()
	own := unpack.unpacks(page) // of memory that it uses again
	if !l.in.opts.ReuseBuffers {
		page.Keep()
	}
	last, some := lastNumber(page.Records)
	begun := false
	next := func(run []source.Record, end bool) error {
		if begun && l.term.Reading().Err() != nil && !time.Now().Before(until) {
			return errForHeir
		}
		begun = true
		return l.deliver(run, &page, own, end, until)
	}
	var pending []source.Record // one run is held back, because the last one carries the end
	err = unpack.each(page, l.in.opts.Batch, func(run []source.Record) error {
		before := pending
		pending = run
		if before == nil {
			return nil
		}
		return next(before, false)
	})
	if err == nil && (len(pending) > 0 || page.End) {
		err = next(pending, page.End)
	}
	if err != nil {
		return false, err
	}
	if c, some := unpack.counted(l.term.Lease.Stream, l.term.Lease.Shard); some && l.in.tell.Unpacked != nil {
		l.in.tell.Unpacked(c)
	}
	if some && !l.pulls() { // also past what was dropped
		l.term.Advance(positionAfter(last, shard.Whole))
	}
	if page.End {
		l.enter(ShardEnding, 0, nil)
		return true, l.term.Finish(l.term.Context(), page.Children)
	}
	l.noteHandled(0)
	return false, nil
}

// lastNumber is the sequence number of the last record, which the handler may change.
func lastNumber(records []source.Record) (seq string, some bool) {
	if len(records) == 0 {
		return "", false
	}
	return records[len(records)-1].SequenceNumber, true
}

// ended keeps of an error that ended a term only what ends Run.
func ended(err error) error {
	var stop *stopError
	if errors.As(err, &stop) {
		return stop
	}
	return nil
}

// deliver hands a run of records to the handler until all of it is done. It fails with the cause
// when the term is over, when the lease is wanted back between two attempts, and with the handler's
// Stop.
func (l *shardLoop) deliver(run []source.Record, page *source.Page, own, end bool, until time.Time) error {
	d := l.delivery(run, page, own, end, until)
	if !d.pulled {
		l.term.SetMark(d)
		defer d.close()
		defer l.term.SetMark(nil)
	}
	for {
		if err := l.term.Check(); err != nil {
			return err
		}
		b := d.next()
		if b == nil {
			l.handled(d, 0)
			return nil
		}
		l.enter(ShardHandling, d.attempt, d.last)
		if f := l.in.tell.BatchBegins; f != nil {
			f(BatchBegins{Stream: d.from.Stream, Shard: d.from.Shard, Records: len(run) - d.head, Attempt: d.attempt + 1})
		}
		began := time.Now()
		err := d.call(b)
		took := time.Since(began)
		if err != nil && d.left() == 0 && !end && ended(err) == nil {
			d.noteFailure(err)
			l.handlerFailed(d, err, 0) // after all was done, so there is nothing to do again
			err = nil
		}
		switch {
		case err == nil:
			l.handled(d, took)
			return nil
		case errors.Is(err, errForHeir):
			return err
		case errors.Is(err, errPulled):
			l.noteHandled(d.bytes)
			if l.in.opts.ReuseBuffers {
				d.close()
			}
			return nil
		}
		if stop := ended(err); stop != nil {
			l.in.stops()
			return stop
		}
		if cause := context.Cause(l.term.Context()); cause != nil {
			l.cutShort(began, cause)
			return cause
		}
		if d.pulled {
			return err
		}
		d.noteFailure(err)
		next := retry.Pause(l.in.opts.RetryMin, l.in.opts.RetryMax, d.attempt)
		l.enter(ShardRetrying, d.attempt, err)
		l.handlerFailed(d, err, next)
		if err := retry.Wait(l.term.Reading(), next); err != nil {
			return err
		}
	}
}

// handled notes that all of a delivery is done.
func (l *shardLoop) handled(d *delivery, took time.Duration) {
	records, bytes := len(d.kept.records), d.bytes
	if at := d.finish(); records > 0 {
		l.term.Advance(at)
	}
	l.noteHandled(bytes)
	l.in.counted.batchesHandled.Add(1)
	l.in.counted.recordsHandled.Add(uint64(records))
	l.in.counted.bytesHandled.Add(uint64(bytes))
	if f := l.in.tell.BatchHandled; f != nil {
		f(BatchHandled{
			Stream: d.from.Stream, Shard: d.from.Shard, Records: records, Bytes: bytes, Behind: d.behind, Took: took, Attempts: d.calls,
		})
	}
}

// call calls the handler.
func call(ctx context.Context, h Handler, b *Batch) error {
	return contained("the handler", func() error { return h.Handle(ctx, b) })
}

// contained turns a panic of the user's code into an error, so that it is retried like one and
// cannot take the process down.
func contained(who string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{who, p, string(debug.Stack())}
		}
	}()
	return f()
}

// handlerFailed tells of a failure, after which the handler is called again after a pause; 0 if it
// is not.
func (l *shardLoop) handlerFailed(d *delivery, err error, next time.Duration) {
	l.in.counted.handlerFailures.Add(1)
	what := "the handler failed; what is not done will be handled again"
	if next == 0 {
		what = "the handler failed when all was done; nothing will be handled again"
	}
	records, first, last := d.rest()
	l.tellFailure(what, HandlerFailed{Records: records, First: first, Last: last, Err: err, Attempt: d.attempt, Next: next})
}

// failing is what is known of failures of the user's code at one position.
type failing struct {
	at    Position
	pulls int  // of ShardHandlers.Pull
	stack bool // of a panic, was logged
}

// failsAt is what is known of failures at a position. There is none before the last one.
func (l *shardLoop) failsAt(at Position) *failing {
	if l.failing == nil || l.failing.at != at {
		l.failing = &failing{at: at}
	}
	return l.failing
}

// tellFailure logs and tells a failure of the user's code. Of a panic it logs the stack, once until
// there is progress: it is the same at each attempt.
func (l *shardLoop) tellFailure(what string, e HandlerFailed) {
	key := l.term.Lease.Key
	e.Stream, e.Shard, e.At = key.Stream, key.Shard, l.term.At()
	args := []any{"stream", e.Stream, "shard", e.Shard, "at", e.At}
	if e.First != "" {
		args = append(args, "records", e.Records, "first", e.First, "last", e.Last)
	}
	args = append(args, "attempt", e.Attempt, "next", e.Next.Round(time.Millisecond), "err", e.Err)
	var panicked *PanicError
	if f := l.failsAt(e.At); errors.As(e.Err, &panicked) && !f.stack {
		f.stack = true
		args = append(args, "stack", panicked.Stack)
	}
	l.in.opts.Logger.Warn(what, args...)
	if f := l.in.tell.HandlerFailed; f != nil {
		f(e)
	}
}

// The loop is its feed's [source.Owner].

// Context ends reading.
func (l *shardLoop) Context() context.Context { return l.term.Context() }

// Calls is what all shards' calls are made with.
func (l *shardLoop) Calls() context.Context { return l.term.Trust() }

// Wake has the loop go on.
func (l *shardLoop) Wake() { l.term.Wake() }

// Failed tells of a read that failed and is tried again.
func (l *shardLoop) Failed(err error, throttled bool, next time.Duration) {
	refused := errors.Is(err, source.ErrNoPosition)
	known := throttled || refused || errors.Is(err, streams.ErrNoStream)
	// an iterator that has expired meanwhile says nothing about what is wrong
	expired := streams.Code(err) == "ExpiredIteratorException"
	l.note(func(n *notes) { n.forAll = known || n.forAll && expired })
	level, what := l.in.opts.Logger.Debug, "reading failed; trying again"
	// else Expired tells where it goes on
	if refused && l.in.opts.Expired == FailExpired && !l.refused {
		l.refused = true
		level = l.in.opts.Logger.Error // once: a person is needed
		what = `the service refuses the position of a shard, which stays there: "weir group reset" moves it, or Options.Expired says where to go on`
	}
	level(what, "stream", l.term.Lease.Stream, "shard", l.term.Lease.Shard,
		"throttled", throttled, "next", next.Round(time.Millisecond), "err", err)
	if throttled {
		l.in.counted.readsThrottled.Add(1)
	} else {
		l.in.counted.readsFailed.Add(1)
	}
	if f := l.in.tell.ReadFailed; f != nil {
		f(ReadFailed{
			Stream: l.term.Lease.Stream, Shard: l.term.Lease.Shard, Err: err, Throttled: throttled, Next: next,
		})
	}
	if at := l.refusedAt(); refused && l.in.opts.Expired == FailExpired && at.Kind() == shard.Sequence && !l.stays {
		l.stays = true
		if f := l.in.tell.PositionExpired; f != nil {
			f(PositionExpired{Stream: l.term.Lease.Stream, Shard: l.term.Lease.Shard, Position: at, Next: at, Err: err})
		}
	}
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

// Expired tells of records that have left the stream, or may have, and were not handled.
func (l *shardLoop) Expired(e source.Expiry) {
	key := l.term.Lease.Key
	args := []any{"stream", key.Stream, "shard", key.Shard, "position", e.At, "next", e.Next}
	if !e.From.IsZero() {
		args = append(args, "from", e.From)
	}
	if !e.To.IsZero() {
		args = append(args, "to", e.To)
	}
	if e.Err != nil {
		args = append(args, "err", e.Err)
	}
	l.in.opts.Logger.Error("records have left the stream, or may have, that were not handled", args...)
	if f := l.in.tell.PositionExpired; f != nil {
		f(PositionExpired{Stream: key.Stream, Shard: key.Shard, Position: e.At, Next: e.Next, From: e.From, To: e.To, Err: e.Err})
	}
}
