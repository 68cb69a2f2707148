package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/lease"
)

// ErrLost is an error for [Fault]. It means that the call or its answer was lost.
var ErrLost = errors.New("storetest: lost on the way")

// Fault is the fault of one call to a store. The zero Fault is no fault. Fields may be combined.
type Fault struct {
	// Delay passes before the call is executed. If the call's context ends first, the call fails
	// with the context's error and is not executed.
	Delay time.Duration
	// Before makes the call fail before it takes effect.
	Before error
	// Later keeps a call that fails because of Before. [FaultyStore.Deliver] executes it later.
	Later bool
	// Twice executes the call twice. The caller gets the second answer.
	Twice bool
	// DelayAnswer passes after the call was executed. If the context ends first, the answer is
	// lost.
	DelayAnswer time.Duration
	// After replaces the answer of an executed call.
	After error
}

// FaultyStore is a store whose calls can fail. It is safe for concurrent use.
type FaultyStore struct {
	store lease.Store
	next  func(op string) Fault

	mu       sync.Mutex
	underway []func(context.Context)
}

var (
	_ lease.Store     = (*FaultyStore)(nil)
	_ lease.Admin     = (*FaultyStore)(nil)
	_ lease.Historian = (*FaultyStore)(nil)
)

// Faulty wraps a store. Before each call it calls next, which returns the call's fault. op is
// "Heartbeat", "View", "Apply", "Lead", "Leave", "Apps", "Remove", "PutHistory" or "History". The
// last four fail if the store is not a [lease.Admin] or [lease.Historian]. next must be safe for
// concurrent use. Delays use package time, so they work with the clock of a synctest bubble.
func Faulty(store lease.Store, next func(op string) Fault) *FaultyStore {
	return &FaultyStore{store: store, next: next}
}

// Deliver executes the calls that failed with [Fault.Later] since the last Deliver, in order. It
// drops their answers and returns the number of calls.
func (s *FaultyStore) Deliver(ctx context.Context) int {
	s.mu.Lock()
	calls := s.underway
	s.underway = nil
	s.mu.Unlock()
	for _, call := range calls {
		call(ctx)
	}
	return len(calls)
}

// call makes one call with its fault.
func call[T any](ctx context.Context, s *FaultyStore, op string, do func(context.Context) (T, error)) (T, error) {
	var none T
	f := s.next(op)
	if err := pause(ctx, f.Delay); err != nil {
		return none, err
	}
	if f.Before != nil {
		if f.Later {
			s.mu.Lock()
			s.underway = append(s.underway, func(ctx context.Context) { _, _ = do(ctx) })
			s.mu.Unlock()
		}
		return none, f.Before
	}
	answer, err := do(ctx)
	if f.Twice {
		answer, err = do(ctx)
	}
	if lost := pause(ctx, f.DelayAnswer); lost != nil {
		return none, lost
	}
	if f.After != nil {
		return none, f.After
	}
	return answer, err
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Abilities implements [lease.Store]. It returns the abilities of the wrapped store. It never
// fails, because it does no I/O.
func (s *FaultyStore) Abilities() lease.Abilities { return s.store.Abilities() }

// Heartbeat implements [lease.Store].
func (s *FaultyStore) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	// A late call may be executed after the caller has changed its slices.
	r.Progress, r.Troubles = slices.Clone(r.Progress), slices.Clone(r.Troubles)
	return call(ctx, s, "Heartbeat", func(ctx context.Context) (lease.Orders, error) { return s.store.Heartbeat(ctx, app, r) })
}

// View implements [lease.Store].
func (s *FaultyStore) View(ctx context.Context, app, since string) (lease.View, error) {
	return call(ctx, s, "View", func(ctx context.Context) (lease.View, error) { return s.store.View(ctx, app, since) })
}

// Apply implements [lease.Store].
func (s *FaultyStore) Apply(ctx context.Context, app string, actions []lease.Action) ([]bool, error) {
	actions = slices.Clone(actions)
	return call(ctx, s, "Apply", func(ctx context.Context) ([]bool, error) { return s.store.Apply(ctx, app, actions) })
}

// Lead implements [lease.Store].
func (s *FaultyStore) Lead(ctx context.Context, app, session string, term uint64) (bool, error) {
	return call(ctx, s, "Lead", func(ctx context.Context) (bool, error) { return s.store.Lead(ctx, app, session, term) })
}

// Leave implements [lease.Store].
func (s *FaultyStore) Leave(ctx context.Context, app string, r lease.Report) error {
	r.Progress = slices.Clone(r.Progress)
	_, err := call(ctx, s, "Leave", func(ctx context.Context) (struct{}, error) { return struct{}{}, s.store.Leave(ctx, app, r) })
	return err
}

var errNoAdmin = errors.New("storetest: the store is not a lease.Admin")

// Apps implements [lease.Admin].
func (s *FaultyStore) Apps(ctx context.Context) ([]string, error) {
	return call(ctx, s, "Apps", func(ctx context.Context) ([]string, error) {
		if a, ok := s.store.(lease.Admin); ok {
			return a.Apps(ctx)
		}
		return nil, errNoAdmin
	})
}

// Remove implements [lease.Admin].
func (s *FaultyStore) Remove(ctx context.Context, app string) error {
	_, err := call(ctx, s, "Remove", func(ctx context.Context) (struct{}, error) {
		if a, ok := s.store.(lease.Admin); ok {
			return struct{}{}, a.Remove(ctx, app)
		}
		return struct{}{}, errNoAdmin
	})
	return err
}

var errNoHistorian = errors.New("storetest: the store is not a lease.Historian")

// PutHistory implements [lease.Historian].
func (s *FaultyStore) PutHistory(ctx context.Context, app string, c lease.HistoryChunk) error {
	c.Data = slices.Clone(c.Data)
	_, err := call(ctx, s, "PutHistory", func(ctx context.Context) (struct{}, error) {
		if h, ok := s.store.(lease.Historian); ok {
			return struct{}{}, h.PutHistory(ctx, app, c)
		}
		return struct{}{}, errNoHistorian
	})
	return err
}

// History implements [lease.Historian].
func (s *FaultyStore) History(ctx context.Context, app string, since int64) ([]lease.HistoryChunk, error) {
	return call(ctx, s, "History", func(ctx context.Context) ([]lease.HistoryChunk, error) {
		if h, ok := s.store.(lease.Historian); ok {
			return h.History(ctx, app, since)
		}
		return nil, errNoHistorian
	})
}
