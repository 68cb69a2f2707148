package shardrun

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/batch"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/shard"
)

// got is the result of waiting for a page.
type got uint8

const (
	aPage    got = iota
	nothing      // there is nothing to read, and the loop is woken when there is
	aTask        // something else is due
	aFailure     // reading is over
)

// dueSoon is how long a request in progress may continue although something else is due. A request
// that is cut short would have to be repeated.
const dueSoon = 15 * time.Second

// nextPage returns the next page, or says why there is none. With fan-out the source waits for a
// page, and nextPage ends the wait when something else is due. With polling the source does not
// wait, and a timer wakes the loop when something else is due.
func (l *Loop) nextPage() (page source.Page, what got, err error) {
	reading := l.term.Reading()
	ctx := reading
	if due := l.session.due(); !due.IsZero() && l.in.FanOut {
		d := l.source.Status().Doing
		if soon := time.Now().Add(dueSoon); d != health.Subscribed && d != health.AtTip && d != health.Pacing && due.Before(soon) {
			due = soon
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(reading, due)
		defer cancel()
	}
	page, err = l.source.Next(ctx)
	switch {
	case err == nil:
		return page, aPage, nil
	case ctx.Err() != nil && reading.Err() == nil:
		return page, aTask, nil
	case errors.Is(err, source.ErrEmpty):
		return page, nothing, nil
	}
	return page, aFailure, err
}

// start returns the position at which reading began.
func (l *Loop) start() Position {
	if l.session == nil {
		return l.term.Lease.Position
	}
	return l.session.start
}

// readFrom makes the source of pages.
func (l *Loop) readFrom(at Position) {
	made := l.in.Run.Pages(l, at)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.source = made
}

// stopReading closes the source of pages.
func (l *Loop) stopReading() {
	if l.source == nil {
		return
	}
	l.source.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.source = nil
}

// pagesNow returns the source of pages, for goroutines other than the loop's. It is nil while there
// is no source, for example while the handler is opened.
func (l *Loop) pagesNow() Pages {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source
}

// noteArrival notes the arrival time of a page's first record, for the lag. It returns the position
// after the last record, and false for a page without records. The loop calls it before the handler
// gets the records, because the handler may change them.
func (l *Loop) noteArrival(page *source.Page) (end Position, some bool) {
	if len(page.Records) == 0 {
		return Position{}, false
	}
	l.needSession()
	end = source.After(page.Records[len(page.Records)-1].SequenceNumber, shard.Whole)
	saved := l.term.Saved()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session.handed.Saved(saved)
	l.session.handed.Add(time.UnixMilli(page.Records[0].Arrival), end)
	return end, true
}

// tip returns the time at which all records of the shard had been read and handed over. It is zero
// if that is unknown.
func (l *Loop) tip() time.Time {
	if l.in.FanOut {
		return l.session.idle.tip
	}
	s := l.source.Status()
	if s.Doing != health.AtTip || s.Behind != 0 || s.Buffered > 0 || s.Err != nil {
		return time.Time{}
	}
	return s.Since
}

// shardIsGone reports a shard that has left the stream, and ends it after the records that were
// read.
func (l *Loop) shardIsGone(err error) next {
	l.Log().Error("a shard expired before it was read to its end; its unread records are lost, and reading continues with its children",
		"seq", l.term.At())
	gone := new(streams.GoneError)
	_ = errors.As(err, &gone) // nothing else wraps it
	return l.take(source.Page{End: true, Children: gone.Children}, time.Time{})
}

// absentPause is the maximum pause between two reads of a stream that does not exist, unless
// Config.IdleInterval is longer. Each shard of the stream makes such reads and reports their
// failures.
const absentPause = 10 * time.Second

// awaitStream waits before the next read of a stream that does not exist, and reports whether to
// continue.
func (l *Loop) awaitStream(err error) bool {
	l.absent = min(l.absent+1, 30)
	l.in.Run.StreamGone(l.term.Lease.Stream, err)
	pause := retry.Pause(l.in.IdleInterval, max(absentPause, l.in.IdleInterval), int(l.absent))
	l.Failed(err, false, pause)
	return retry.Wait(l.term.Reading(), pause) == nil
}

// streamIsThere notes that the stream exists.
func (l *Loop) streamIsThere() {
	if l.absent > 0 {
		l.absent = 0
		l.in.Run.StreamBack(l.term.Lease.Stream)
	}
}

// The loop is the [polling.Owner] of its feed.

// Context returns the context of the term. Reading ends with it.
func (l *Loop) Context() context.Context { return l.term.Context() }

// Calls returns the context for calls of the service. All shards share it.
func (l *Loop) Calls() context.Context { return l.term.Validity() }

// Wake wakes the loop.
func (l *Loop) Wake() { l.term.Wake() }

// Failed reports a failed read. The source tries again after the time next.
func (l *Loop) Failed(err error, throttled bool, next time.Duration) {
	refused := errors.Is(err, source.ErrNoPosition)
	known := throttled || refused || errors.Is(err, streams.ErrNoStream)
	// An iterator that has expired in the meantime does not show why earlier reads failed.
	expired := streams.Code(err) == "ExpiredIteratorException"
	l.note(func(n *notes) { n.forAll = known || n.forAll && expired })
	stays := refused && l.in.Expired == source.StayExpired
	level, what := l.in.Log.Debug, "reading failed; trying again"
	// With another policy, Expired names the position at which reading continues. A stream that was
	// deleted and created again also refuses positions, until the leader has listed the stream and
	// replaced its leases.
	if stays && l.needsReset(time.Now()) {
		level = l.in.Log.Error // once: a person is needed
		what = `the service refuses the position of a shard, so it is not read: move it with "weir group reset", or set Options.Expired`
	}
	key := l.term.Lease.Key
	level(what, "stream", key.Stream, "shard", key.Shard, "throttled", throttled, "next", next.Round(time.Millisecond), "err", err)
	if streams.Throttled(err) { // a subscription that waits for the one before it is not
		l.in.Run.Throttled(l, next)
	}
	if throttled {
		l.in.Counters.ReadsThrottled.Add(1)
	} else {
		l.in.Counters.ReadsFailed.Add(1)
	}
	if ev := l.in.Events; ev.On() {
		ev.Emit(event.ReadFailed{
			Time: time.Now(), Stream: key.Stream, Shard: key.Shard,
			Err: err, Throttled: throttled, Next: next,
		})
	}
	if at := l.refusedAt(); stays && at.Kind() == shard.Sequence && !l.noteStays() {
		l.emitExpired(source.Expiry{At: at, Next: at, Err: err})
	}
}

// refusal describes a position that the service refuses.
type refusal struct {
	since mono.Time // when it was refused first
	told  bool      // a log line said that it needs a reset
}

// needsReset reports once that a position was refused for longer than the leader needs to notice a
// recreated stream.
func (l *Loop) needsReset(now time.Time) bool {
	if l.refusal == nil {
		l.refusal = &refusal{since: mono.Of(now)}
	}
	r := l.refusal
	if r.told || now.Sub(r.since.Time()) < l.in.ListInterval {
		return false
	}
	r.told = true
	return true
}

// noteStays notes that the shard stays at a position that is refused. It reports whether that was
// noted before.
func (l *Loop) noteStays() (before bool) {
	l.note(func(n *notes) { before, n.stays = n.stays, true })
	return before
}

// refusedAt returns the position that the service refuses. It is the position of the sink if
// reading began there and has not yet passed the checkpoint, and otherwise the checkpoint.
func (l *Loop) refusedAt() Position {
	at := l.term.At()
	if !l.in.PerTerm {
		return at
	}
	if start := l.session.start; start.Kind() == shard.Sequence && start.Compare(at) < 0 {
		return start
	}
	return at
}

// Expired reports unhandled records that have left the stream, or that may have left it.
func (l *Loop) Expired(e source.Expiry) {
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
	l.Log().Error("records have expired, or may have expired, before they were handled; Options.Expired decides where reading continues", args...)
	l.emitExpired(e)
}

// emitExpired emits the event for a position that has expired.
func (l *Loop) emitExpired(e source.Expiry) {
	if ev, of := l.in.Events, &l.term.Lease; ev.On() {
		ev.Emit(event.PositionExpired{
			Time: time.Now(), Stream: of.Stream, Shard: of.Shard,
			Position: e.At, Next: e.Next, From: e.From, To: e.To, Err: e.Err,
		})
	}
}

// FanOutChanged reports that the shard is polled, because of why, or that fan-out is back if why
// is nil. It is called once for each change.
func (l *Loop) FanOutChanged(why error) {
	if why != nil {
		l.Repeated().Warn("fan-out is unavailable; weir polls, and retries fan-out every minute", "err", why)
	} else {
		l.Repeated().Info("fan-out is back")
	}
	if ev, of := l.in.Events, &l.term.Lease; ev.On() {
		ev.Emit(event.FanOutChanged{
			Time: time.Now(), Stream: of.Stream, Shard: of.Shard, Active: why == nil, Err: why,
		})
	}
}

// tellRead reports a page before it is handled.
func (l *Loop) tellRead(page *source.Page) {
	n := len(page.Records)
	if n == 0 && !page.End {
		return
	}
	c := l.in.Counters
	c.Reads.Add(1)
	c.RecordsRead.Add(uint64(n))
	c.BytesRead.Add(uint64(page.Bytes))
	if ev, of := l.in.Events, &l.term.Lease; ev.On() {
		ev.Emit(event.Read{
			Time: time.Now(), Stream: of.Stream, Shard: of.Shard, Records: n, Bytes: page.Bytes,
			Took: page.Took, Behind: page.Behind, End: page.End,
		})
	}
}

// tellUnpacked reports the aggregates of a page.
func (l *Loop) tellUnpacked(u *batch.Unpacker) {
	c, some := u.Counted()
	l.in.Counters.RepeatsDropped.Add(uint64(c.Repeats))
	if ev, of := l.in.Events, &l.term.Lease; some && ev.On() {
		ev.Emit(event.Unpacked{
			Time: time.Now(), Stream: of.Stream, Shard: of.Shard, Aggregates: c.Aggregates,
			Records: c.Records, Dropped: c.Dropped, Repeats: c.Repeats, Damaged: c.Damaged,
		})
	}
}
