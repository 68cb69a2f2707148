package guarded

import (
	"context"
	"fmt"

	"github.com/weir-go/weir/lease"
)

// Store calls the user's store and returns its panics as errors. weir.New makes it, and a worker
// uses the user's store only through it. It embeds nothing, so that a new method of [lease.Store]
// cannot bypass it.
type Store struct {
	to       lease.Store
	keep     lease.Historian // nil if the store does not implement it
	has      lease.Abilities // the store's abilities in NewStore; they never change
	panicked Panicked
}

const theStore = "the store"

// NewStore returns a Store for the user's store. It returns an error if the user's store panics in
// Abilities.
func NewStore(store lease.Store, panicked Panicked) (*Store, error) {
	s := &Store{to: store, panicked: panicked}
	s.keep, _ = store.(lease.Historian)
	err := s.panicked.call(theStore, func() error { s.has = store.Abilities(); return nil })
	return s, err
}

// Abilities returns the abilities that the store had when the worker was made.
func (s *Store) Abilities() lease.Abilities { return s.has }

// Heartbeat implements [lease.Store].
func (s *Store) Heartbeat(ctx context.Context, app string, r lease.Report) (o lease.Orders, err error) {
	err = s.panicked.call(theStore, func() (err error) { o, err = s.to.Heartbeat(ctx, app, r); return err })
	return o, err
}

// View implements [lease.Store].
func (s *Store) View(ctx context.Context, app, since string) (v lease.View, err error) {
	err = s.panicked.call(theStore, func() (err error) { v, err = s.to.View(ctx, app, since); return err })
	return v, err
}

// Apply implements [lease.Store]. It also returns an error if the store does not return a result
// for each action.
func (s *Store) Apply(ctx context.Context, app string, actions []lease.Action) (did []bool, err error) {
	err = s.panicked.call(theStore, func() (err error) { did, err = s.to.Apply(ctx, app, actions); return err })
	if err == nil && len(did) != len(actions) {
		err = fmt.Errorf("weir: the store answered %d of %d actions", len(did), len(actions))
	}
	return did, err
}

// Lead implements [lease.Store].
func (s *Store) Lead(ctx context.Context, app, session string, term uint64) (won bool, err error) {
	err = s.panicked.call(theStore, func() (err error) { won, err = s.to.Lead(ctx, app, session, term); return err })
	return won, err
}

// Leave implements [lease.Store].
func (s *Store) Leave(ctx context.Context, app string, r lease.Report) error {
	return s.panicked.call(theStore, func() error { return s.to.Leave(ctx, app, r) })
}

// KeepsHistory reports whether PutHistory may be called.
func (s *Store) KeepsHistory() bool { return s.keep != nil && s.has.Has(lease.KeepHistory) }

// PutHistory implements [lease.Historian].
func (s *Store) PutHistory(ctx context.Context, app string, c lease.HistoryChunk) error {
	return s.panicked.call(theStore, func() error { return s.keep.PutHistory(ctx, app, c) })
}
