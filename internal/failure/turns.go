package failure

import (
	"context"

	"github.com/weir-go/weir/internal/lock"
)

// Turn is the permission of a shard to try a record. Other shards of the process may also try
// records.
type Turn uint8

const (
	NoTurn   Turn = iota // the shard tries no record
	Beside               // other shards may try records at the same time
	ByItself             // other shards must not: an owner died while several records were tried
)

// Turns controls which shards of a process may try records at the same time. If a process dies
// while several records are tried, it is unknown which of them killed it. The zero Turns is ready
// to use.
type Turns struct {
	mu      lock.Mutex[lock.Turns] // guards the fields below
	taken   int                    // number of turns that are held
	single  bool                   // the turn that is held is ByItself
	waiting int                    // number of shards that wait for a ByItself turn
	changed chan struct{}          // closed when a turn is returned; nil if no shard waits
}

// Take waits for a turn.
func (s *Turns) Take(ctx context.Context, kind Turn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind == ByItself {
		s.waiting++
		defer func() { s.waiting-- }()
	}
	for s.single || kind == ByItself && s.taken > 0 || kind == Beside && s.waiting > 0 {
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
			s.mu.Lock()
		case <-ctx.Done():
			cause := context.Cause(ctx) // before the lock, because it takes the mutex of the term
			s.mu.Lock()
			s.wake() // other shards may have waited for this shard's turn
			return cause
		}
	}
	s.taken++
	s.single = kind == ByItself
	return nil
}

// GiveBack returns a turn.
func (s *Turns) GiveBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	s.single = false
	s.wake()
}

// wake wakes the waiting shards. The caller holds the lock.
func (s *Turns) wake() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}
