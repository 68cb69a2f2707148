package behaviour

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"github.com/weir-go/weir/lease"
)

// faultyStore is the connection of one worker to the store. It can be cut, and can lose answers. It
// also records whether the worker's process hangs or is dead.
type faultyStore struct {
	lease.Store

	mu   sync.Mutex
	down bool
	deny bool    // while down, calls fail immediately instead of hanging
	lose float64 // fraction of the answers that are lost after the call took effect
	dead bool
	hang chan struct{}
}

var errUnreachable = errors.New("the store is not reachable")

func (s *faultyStore) set(down bool, lose float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.lose = down || s.dead, lose
}

// suspend makes the process hang. Its handlers and its calls to the store stop until resume.
func (s *faultyStore) suspend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.hang = true, make(chan struct{})
}

func (s *faultyStore) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hang != nil {
		close(s.hang)
		s.hang, s.down = nil, s.dead
	}
}

func (s *faultyStore) suspended() {
	s.mu.Lock()
	hang := s.hang
	s.mu.Unlock()
	if hang != nil {
		<-hang
	}
}

func (s *faultyStore) crashed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead
}

// crash cuts the worker off forever, so that its calls have no more effect. gone is done when the
// worker has ended.
func (p *process) crash(gone *sync.WaitGroup) {
	p.mu.Lock()
	p.dead, p.down = true, true
	p.mu.Unlock()
	gone.Go(func() { _ = p.stop() })
}

func over[T any](ctx context.Context, s *faultyStore, call func() (T, error)) (T, error) {
	s.mu.Lock()
	down, deny, lose := s.down, s.deny, s.lose
	s.mu.Unlock()
	var none T
	if down {
		if !deny {
			<-ctx.Done()
		}
		return none, errUnreachable
	}
	v, err := call()
	if rand.Float64() < lose {
		return none, errUnreachable
	}
	return v, err
}

func (s *faultyStore) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	return over(ctx, s, func() (lease.Orders, error) { return s.Store.Heartbeat(ctx, app, r) })
}

func (s *faultyStore) View(ctx context.Context, app, since string) (lease.View, error) {
	return over(ctx, s, func() (lease.View, error) { return s.Store.View(ctx, app, since) })
}

func (s *faultyStore) Apply(ctx context.Context, app string, a []lease.Action) ([]bool, error) {
	return over(ctx, s, func() ([]bool, error) { return s.Store.Apply(ctx, app, a) })
}

func (s *faultyStore) Lead(ctx context.Context, app, session string, term uint64) (bool, error) {
	return over(ctx, s, func() (bool, error) { return s.Store.Lead(ctx, app, session, term) })
}

func (s *faultyStore) Leave(ctx context.Context, app string, r lease.Report) error {
	_, err := over(ctx, s, func() (struct{}, error) { return struct{}{}, s.Store.Leave(ctx, app, r) })
	return err
}
