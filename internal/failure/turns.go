package failure

import (
	"context"

	"github.com/weir-go/weir/internal/lock"
)

// Turn is how a shard tries a record while other shards of the process may try theirs.
type Turn uint8

const (
	NoTurn   Turn = iota // it tries none
	Beside               // other shards may try theirs meanwhile
	ByItself             // other shards may not: an owner died while several were tried
)

// Turns are those of a process. If several records are tried at once and the process dies, it is
// not known which of them killed it. The zero Turns is ready.
type Turns struct {
	mu      lock.Mutex[lock.Turns] // guards the fields below
	taken   int                    // turns that are held
	single  bool                   // the one that is held is ByItself
	waiting int                    // shards that wait for a turn by itself
	changed chan struct{}          // closed when a turn is given back; nil if no shard waits
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
			s.wake() // the shards that waited for this one to have its turn
			return cause
		}
	}
	s.taken++
	s.single = kind == ByItself
	return nil
}

// GiveBack ends a turn.
func (s *Turns) GiveBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	s.single = false
	s.wake()
}

// wake is called with the lock held.
func (s *Turns) wake() {
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}
