package weir

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/delivery"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/wire/codec"
)

// What is read becomes batches: bounded by Options.Batch and BatchBytes, and with BatchWait those
// that are not full wait for more. Reading goes on meanwhile.

// batchSize bounds a batch.
type batchSize struct {
	records int
	bytes   int // of data; 0 is no bound
}

// cut is how many of the records belong to a batch that has so many records and bytes already: at
// least one of a batch that has none.
func (s batchSize) cut(records []source.Record, have, bytes int) int {
	n := max(min(len(records), s.records-have), 0)
	if s.bytes == 0 {
		return n
	}
	for i := range n {
		bytes += len(records[i].Data)
		if bytes > s.bytes && have+i > 0 {
			return i
		}
	}
	return n
}

// full reports whether a batch has as much as it may have.
func (s batchSize) full(records, bytes int) bool {
	return records >= s.records || s.bytes > 0 && bytes >= s.bytes
}

// gathered is a batch that waits for more records. They are copies, so that what they were read in
// goes back at once: it may be much larger, and the next read would wait for it. It belongs to the
// goroutine that runs the loop.
type gathered struct {
	share   memory.Share
	records []source.Record
	copies  [][]byte // what their data lies in
	bytes   int      // of data
	held    int      // of the share
	behind  time.Duration
	due     time.Time // it waits until then; zero while there are no records
	timer   *time.Timer
	upTo    Position // everything before that is done when the batch is, also what was dropped
}

// waits reports whether there is a batch that waits.
func (g *gathered) waits() bool { return g != nil && len(g.records) > 0 }

// isDue reports whether the batch has waited for as long as it may.
func (g *gathered) isDue() bool { return g.waits() && !time.Now().Before(g.due) }

// add adds copies of records. It fails when the share of memory allows no more.
func (g *gathered) add(records []source.Record) bool {
	names, data := 0, 0
	for i := range records {
		names += len(records[i].Key) + len(records[i].SequenceNumber)
		data += len(records[i].Data)
	}
	if g.share.TryTake(names+data, names+data) == 0 && names+data > 0 {
		return false
	}
	g.held += names + data
	g.bytes += data
	var text strings.Builder
	text.Grow(names)
	for i := range records {
		text.WriteString(records[i].SequenceNumber)
		text.WriteString(records[i].Key)
	}
	all, payloads := text.String(), make([]byte, 0, data)
	for i := range records {
		r := records[i]
		seq, key := len(r.SequenceNumber), len(r.Key)
		r.SequenceNumber, r.Key, all = all[:seq], all[seq:seq+key], all[seq+key:]
		at := len(payloads)
		payloads = append(payloads, r.Data...)
		r.Data = payloads[at:len(payloads):len(payloads)]
		g.records = append(g.records, r)
	}
	g.copies = append(g.copies, payloads)
	return true
}

// close gives the memory back.
func (g *gathered) close() {
	if g == nil {
		return
	}
	if g.timer != nil {
		g.timer.Stop()
	}
	g.share.Close()
}

// size bounds the batches of the loop.
func (l *shardLoop) size() batchSize { return batchSize{l.in.opts.Batch, l.in.opts.BatchBytes} }

// gathers reports whether batches that are not full wait. In a trial they do not: its records are
// handled one at a time anyway.
func (l *shardLoop) gathers() bool { return l.in.opts.BatchWait > 0 && l.trial() == nil }

// gather hands a run over, with what has waited before it, as far as it makes full batches or
// nothing may wait any more; the rest waits. isLast says that no run of the page follows.
func (l *shardLoop) gather(run []source.Record, page *source.Page, own, isLast bool, until time.Time) error {
	g, size, end := l.handles.gathered, l.size(), page.End && isLast
	if g == nil {
		g = new(gathered)
		l.in.budget.Open(&g.share)
		l.handles.gathered = g
	}
	for begun := false; ; begun = true {
		if begun && l.wantedBack(until) {
			return errForHeir
		}
		final := end || l.term.Reading().Err() != nil // nothing more is to be waited for
		whole := !isLast && !begun                    // what is left of a run goes with the next one
		if !g.waits() && (whole || final || size.full(len(run), dataBytes(run))) {
			return l.deliver(l.handover(run, own, delivery.Batch{Behind: page.Behind, End: end}, until))
		}
		n := size.cut(run, len(g.records), g.bytes)
		switch {
		case n > 0 && g.add(run[:n]):
			g.behind, run = page.Behind, run[n:]
		case n > 0 && !g.waits(): // there is no memory to have it wait
			return l.deliver(l.handover(run, own, delivery.Batch{Behind: page.Behind, End: end}, until))
		} // else what waits goes first
		if len(run) == 0 && !final && !size.full(len(g.records), g.bytes) {
			if g.due.IsZero() {
				g.due = time.Now().Add(l.in.opts.BatchWait)
				g.timer = time.AfterFunc(l.in.opts.BatchWait, l.term.Wake)
			}
			return nil
		}
		if err := l.handOver(len(run) == 0 && end, until); err != nil || len(run) == 0 {
			return err
		}
	}
}

func dataBytes(run []source.Record) (n int) {
	for i := range run {
		n += len(run[i].Data)
	}
	return n
}

// handOver delivers what has waited, with the end of the shard if that follows it.
func (l *shardLoop) handOver(end bool, until time.Time) error {
	g := l.handles.gathered
	records, copies, held, upTo := g.records, g.copies, g.held, g.upTo
	if g.timer != nil {
		g.timer.Stop()
	}
	g.records, g.copies, g.bytes, g.held, g.due, g.timer, g.upTo = nil, nil, 0, 0, time.Time{}, nil, Position{}
	defer g.share.Give(held)
	if err := l.deliver(l.handover(records, false, delivery.Batch{Behind: g.behind, End: end}, until)); err != nil {
		return err
	}
	if l.in.poison && l.in.opts.ReuseBuffers { // as with a page that is used again
		for _, data := range copies {
			for i := range data {
				data[i] = codec.Poisoned
			}
		}
	}
	if !upTo.IsZero() {
		l.passed(upTo)
	}
	return nil
}

// flush hands over what waits, if anything does.
func (l *shardLoop) flush(until time.Time) error {
	if l.handles == nil || !l.handles.gathered.waits() {
		return nil
	}
	defer l.rest()
	return l.handOver(false, until)
}

// rest notes that the handler has nothing to do.
func (l *shardLoop) rest() {
	if l.handles != nil && l.handles.gathered.waits() {
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
		// a call that is cut short would have to be made again
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
	case h.gathered.waits():
		return h.gathered.due
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

// gatheredIsDue reports whether what waits is to be handed over before more is read: it has waited
// for as long as it may, or reading waits for memory, of which it has some.
func (l *shardLoop) gatheredIsDue() bool {
	if l.handles == nil || !l.handles.gathered.waits() {
		return false
	}
	if l.handles.gathered.isDue() {
		return true
	}
	s := l.source.Status()
	// a subscription waits for a moment with every event
	return s.Doing == source.AwaitingMemory && (l.in.consumers == nil || time.Since(s.Since) > time.Second)
}
