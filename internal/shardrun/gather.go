package shardrun

import (
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/batch"
	"github.com/weir-go/weir/internal/delivery"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/wire/codec"
)

// gatherer collects the records of a shard until a batch is full, while reading continues. A nil
// gatherer has no records. In a trial no gatherer is used, because records are handled one at a
// time.
type gatherer struct {
	batch.Gathering
	loop    *Loop
	share   memory.Share
	flushes *time.Timer // wakes the loop when the batch that waits is due; nil if none does
}

// waits reports whether a batch waits.
func (g *gatherer) waits() bool { return g != nil && g.Waits() }

// add adds a run to the waiting records and hands over all full batches. The rest waits, unless the
// shard ends or another worker is to get the lease. isLast is set for the last run of the page.
func (g *gatherer) add(run []source.Record, page *source.Page, own, isLast bool, until time.Time) next {
	l, end := g.loop, page.End && isLast
	for begun := false; ; begun = true {
		if begun && l.wantedBack(until) {
			return next{then: over}
		}
		final := end || l.term.Reading().Err() != nil // nothing more is to be waited for
		rest, then := g.Add(batch.Run{Records: run, Behind: page.Behind, Final: final, Whole: !isLast && !begun})
		switch then {
		case batch.Direct:
			return l.handOver(rest, own, delivery.Batch{Behind: page.Behind, End: end}, until)
		case batch.Wait:
			if g.Due.IsZero() {
				g.Due = time.Now().Add(l.in.BatchWait)
				g.flushes = time.AfterFunc(l.in.BatchWait, l.term.Wake)
			}
			return next{}
		}
		if n := g.handOver(len(rest) == 0 && end, until); n.then != goOn || len(rest) == 0 {
			return n
		}
		run = rest
	}
}

// handOver hands over the waiting records. end is set if the shard ends after these records.
func (g *gatherer) handOver(end bool, until time.Time) next {
	l := g.loop
	g.stopFlush()
	w := g.Take()
	defer g.Give(w)
	if n := l.handOver(w.Records, false, delivery.Batch{Behind: w.Behind, End: end}, until); n.then != goOn {
		return n
	}
	if l.in.Poison && l.in.Reuse { // as with a page that is used again
		w.Fill(codec.Poisoned)
	}
	if !w.UpTo.IsZero() {
		l.passed(w.UpTo)
	}
	return next{}
}

// stopFlush ends the timer of the batch that waits.
func (g *gatherer) stopFlush() {
	if g.flushes != nil {
		g.flushes.Stop()
		g.flushes = nil
	}
}

// stop drops the waiting records and gives their memory back.
func (g *gatherer) stop() {
	g.stopFlush()
	g.share.Close()
}

// isDue reports whether the waiting records have to be handed over before more is read. This is the
// case if BatchWait is over. It is also the case if reading waits for memory, because the waiting
// records use a part of the memory.
func (g *gatherer) isDue() bool {
	if !g.waits() {
		return false
	}
	if g.IsDue(time.Now()) {
		return true
	}
	s := g.loop.source.Status()
	// A subscription waits for memory for a moment with every event, so a short wait does not
	// count.
	return s.Doing == health.AwaitingMemory && (!g.loop.in.FanOut || time.Since(s.Since) > time.Second)
}
