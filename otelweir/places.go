package otelweir

import (
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/health"
)

// mostMarks is how many handled batches whose progress is not saved a shard keeps apart.
const mostMarks = 256

// placeKey names one holding of one shard's lease.
type placeKey struct {
	stream, shard string
	epoch         uint64
}

// place is what the handler's calls tell of a shard beyond its status: how old records are.
type place struct {
	atHand  []time.Time   // arrival of the first record of each call that goes on
	failing time.Time     // of the oldest call that failed and was not repeated with success; zero when none did
	marks   []mark        // of what is handled and not saved
	silent  time.Time     // since when there was no answer to a read; zero when there was
	durable weir.Position // that was saved last; zero before this lease has saved one
	seen    health.Window // what was observed, whenever metrics were collected
}

// mark is a handled batch.
type mark struct {
	end   weir.Position
	first time.Time // arrival of its first record
}

// places are those of the shards that this worker holds.
type places struct {
	mu sync.Mutex
	of map[placeKey]*place
}

// locked calls f with the place of a lease.
func (p *places) locked(key placeKey, f func(*place)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[placeKey]*place{}
	}
	at := p.of[key]
	if at == nil {
		at = &place{}
		p.of[key] = at
	}
	f(at)
}

func (p *places) begin(key placeKey, first time.Time) {
	p.locked(key, func(at *place) { at.atHand = append(at.atHand, first) })
}

// handled notes a batch that is done, up to end. again says that it had failed before.
func (p *places) handled(key placeKey, first time.Time, end weir.Position, again bool) {
	p.locked(key, func(at *place) {
		at.returned(first)
		if again {
			at.failing = time.Time{}
		}
		at.mark(first, end)
	})
}

func (p *places) failed(key placeKey, first time.Time) {
	p.locked(key, func(at *place) {
		at.returned(first)
		at.failing = earlier(at.failing, first)
	})
}

// saved notes that progress up to a position is durable.
func (p *places) saved(key placeKey, upTo weir.Position) {
	p.locked(key, func(at *place) {
		at.durable = upTo
		at.marks = slices.DeleteFunc(at.marks, func(m mark) bool { return m.end.Compare(upTo) <= 0 })
	})
}

func (p *places) forget(key placeKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, key)
}

// keep forgets all but the leases that are held, whose end was not told perhaps.
func (p *places) keep(held map[placeKey]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.of {
		if !held[key] {
			delete(p.of, key)
		}
	}
}

// returned notes that a call is over.
func (at *place) returned(first time.Time) {
	if i := slices.Index(at.atHand, first); i >= 0 {
		at.atHand = slices.Delete(at.atHand, i, i+1)
	}
}

// mark notes a handled batch. Where there is no room, the last mark grows: what is not saved then
// looks older than it is, until something is.
func (at *place) mark(first time.Time, end weir.Position) {
	if len(at.marks) < mostMarks {
		at.marks = append(at.marks, mark{end, first})
		return
	}
	last := &at.marks[mostMarks-1]
	last.first = earlier(last.first, first)
	if end.Compare(last.end) > 0 {
		last.end = end
	}
}

// oldest is when the oldest record arrived that a call is at, or has failed at.
func (at *place) oldest() (oldest time.Time) {
	oldest = at.failing
	for _, first := range at.atHand {
		oldest = earlier(oldest, first)
	}
	return oldest
}

// unsaved is when the oldest record arrived that is handled and whose progress is not saved.
func (at *place) unsaved() (oldest time.Time) {
	for _, m := range at.marks {
		oldest = earlier(oldest, m.first)
	}
	return oldest
}

// earlier is the earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
