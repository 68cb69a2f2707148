package weir

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/internal/batch"
	"github.com/weir-go/weir/internal/delivery"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/wire/codec"
)

// Pages become batches of at most Options.Batch records and BatchBytes bytes. With BatchWait a
// batch that is not full waits for more records, while reading continues.

// size bounds the batches of the loop.
func (l *shardLoop) size() batch.Size {
	return batch.Size{Records: l.in.opts.Batch, Bytes: l.in.opts.BatchBytes}
}

// unpacker prepares what makes runs of a page, without those that the filter drops.
func (l *shardLoop) unpacker() *batch.Unpacker {
	u := batch.NewUnpacker(batch.Mode(l.in.opts.Aggregates), l.term.Lease.Stream, l.term.Lease.Shard, l.term.Lease.Range, l.start())
	u.Filter = l.filtering()
	return u
}

// tellUnpacked reports the aggregates of a page.
func (l *shardLoop) tellUnpacked(u *batch.Unpacker) {
	if c, some := u.Counted(); some {
		emit(l.in, l.in.opts.Events.Unpacked, Unpacked{
			Stream: l.term.Lease.Stream, Shard: l.term.Lease.Shard, Aggregates: c.Aggregates, Records: c.Records, Dropped: c.Dropped, Damaged: c.Damaged,
		})
	}
}

// gathers reports whether batches that are not full wait. In a trial they do not: its records are
// handled one at a time anyway.
func (l *shardLoop) gathers() bool { return l.in.opts.BatchWait > 0 && l.trial() == nil }

// gather adds a run to the waiting records and delivers all full batches. Records that do not fill
// a batch keep waiting, unless no more waiting is allowed. isLast is set for the last run of the
// page.
func (l *shardLoop) gather(run []source.Record, page *source.Page, own, isLast bool, until time.Time) error {
	h, end := l.handles, page.End && isLast
	if h.gathered == nil {
		share := new(memory.Share)
		l.in.budget.Open(share)
		h.gathered, h.share = &batch.Gathering{Share: share, Size: l.size()}, share
	}
	for begun := false; ; begun = true {
		if begun && l.wantedBack(until) {
			return errForHeir
		}
		final := end || l.term.Reading().Err() != nil // nothing more is to be waited for
		rest, then := h.gathered.Add(batch.Run{Records: run, Behind: page.Behind, Final: final, Whole: !isLast && !begun})
		switch then {
		case batch.Direct:
			return l.deliver(l.handover(rest, own, delivery.Batch{Behind: page.Behind, End: end}, until))
		case batch.Wait:
			if h.gathered.Due.IsZero() {
				h.gathered.Due = time.Now().Add(l.in.opts.BatchWait)
				h.flushes = time.AfterFunc(l.in.opts.BatchWait, l.term.Wake)
			}
			return nil
		}
		if err := l.handOver(len(rest) == 0 && end, until); err != nil || len(rest) == 0 {
			return err
		}
		run = rest
	}
}

// handOver delivers what has waited, with the end of the shard if that follows it.
func (l *shardLoop) handOver(end bool, until time.Time) error {
	g := l.handles.gathered
	l.handles.stopFlush()
	w := g.Take()
	defer g.Give(w)
	if err := l.deliver(l.handover(w.Records, false, delivery.Batch{Behind: w.Behind, End: end}, until)); err != nil {
		return err
	}
	if l.in.poison && l.in.opts.ReuseBuffers { // as with a page that is used again
		w.Fill(codec.Poisoned)
	}
	if !w.UpTo.IsZero() {
		l.passed(w.UpTo)
	}
	return nil
}

// stopFlush ends the timer of the batch that waits.
func (h *handling) stopFlush() {
	if h.flushes != nil {
		h.flushes.Stop()
		h.flushes = nil
	}
}

// stopGathering ends the wait of a batch, and gives its memory back.
func (h *handling) stopGathering() {
	if h.stopFlush(); h.share != nil {
		h.share.Close()
	}
}

// flush hands over what waits, if anything does.
func (l *shardLoop) flush(until time.Time) error {
	if l.handles == nil || !l.handles.gathered.Waits() {
		return nil
	}
	defer l.rest()
	return l.handOver(false, until)
}

// rest notes that the handler has nothing to do.
func (l *shardLoop) rest() {
	if l.handles != nil && l.handles.gathered.Waits() {
		l.enter(ShardGathering, 0, nil)
	} else {
		l.enter("", 0, nil)
	}
}

// errDue is for a wait that ended because something else is due.
var errDue = errors.New("weir: something else is due")

// nextPage waits for the next page as the source does, and where that waits in the call, no longer
// than until something else is due: then it fails with errDue. Where it does not, a timer wakes the
// loop.
func (l *shardLoop) nextPage() (source.Page, error) {
	reading := l.term.Reading()
	due := l.handles.due()
	if due.IsZero() || l.in.consumers == nil {
		return l.source.Next(reading)
	}
	if d := l.source.Status().Doing; d != source.Subscribed && d != source.AtTip && d != source.Pacing {
		// a call that is cut short would have to be repeated
		due = later(due, time.Now().Add(15*time.Second))
	}
	ctx, cancel := context.WithDeadline(reading, due)
	defer cancel()
	page, err := l.source.Next(ctx)
	if err != nil && ctx.Err() != nil && reading.Err() == nil {
		err = errDue
	}
	return page, err
}

// due is when the loop has something to do although nothing was read; zero for never.
func (h *handling) due() time.Time {
	switch {
	case h == nil:
		return time.Time{}
	case h.gathered.Waits():
		return h.gathered.Due
	}
	return h.idle.due
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// isGathering reports whether a batch waits, for other goroutines than the loop's.
func (l *shardLoop) isGathering() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == ShardGathering
}

// gatheredIsDue reports whether the waiting records have to be handed over before more is read:
// BatchWait is over, or reading waits for memory, some of which they use.
func (l *shardLoop) gatheredIsDue() bool {
	if l.handles == nil || !l.handles.gathered.Waits() {
		return false
	}
	if l.handles.gathered.IsDue(time.Now()) {
		return true
	}
	s := l.source.Status()
	// a subscription waits for a moment with every event
	return s.Doing == source.AwaitingMemory && (l.in.consumers == nil || time.Since(s.Since) > time.Second)
}
