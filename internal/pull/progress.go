package pull

import (
	"sync/atomic"

	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// Progress describes how far a function that pulls has got during one call. A nil Progress means
// that no function pulls.
type Progress struct {
	done chan struct{} // closed when the function has returned and err is set
	err  error

	mu      lock.Mutex[lock.Puller] // guards yielded and held
	yielded shard.Position          // after the last record that the function got
	held    Hold

	handed shard.Position        // as yielded; only the shard's goroutine uses it
	trail  atomic.Pointer[trail] // records dropped after handed, or nil
}

// Hold is the reason why the checkpoint of a shard does not move.
type Hold struct {
	Why   string // empty if there is no hold
	Since mono.Time
}

// trail describes the records that were dropped after the last record that the function got.
type trail struct{ after, upTo shard.Position }

// Hold sets the reason why the checkpoint does not move. An empty reason ends the hold. Any
// goroutine may call it.
func (p *Progress) Hold(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held = (Hold{}); why != "" {
		p.held = Hold{why, mono.Now()}
	}
}

// Held returns the hold that Hold set last. Any goroutine may call it.
func (p *Progress) Held() Hold {
	if p == nil {
		return Hold{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// Returned returns an [EndedError] when the function has returned, and nil before.
func (p *Progress) Returned() error {
	if p == nil {
		return nil
	}
	select {
	case <-p.done:
		return &EndedError{p.err}
	default:
		return nil
	}
}

// Yield notes that the function gets the records up to a position.
func (p *Progress) Yield(upTo shard.Position) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.yielded = upTo
}

// Yielded returns the position after the last record that the function got.
func (p *Progress) Yielded() shard.Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.yielded
}

// HandedOver notes the last record of the batch that is handed over next; see Dropped.
func (p *Progress) HandedOver(r *source.Record) {
	p.handed = source.After(r.SequenceNumber, r.Done)
}

// Dropped notes that all records between the last record of HandedOver and a position were dropped.
func (p *Progress) Dropped(upTo shard.Position) {
	p.trail.Store(&trail{after: p.handed, upTo: upTo})
}

// Past returns the position before which everything is done. The argument done is the position
// before which the function has done everything. The result is later if the next records were
// dropped. Any goroutine may call Past.
func (p *Progress) Past(done shard.Position) shard.Position {
	if t := p.trail.Load(); t != nil && done.Compare(t.after) >= 0 && done.Compare(t.upTo) < 0 {
		return t.upTo
	}
	return done
}
