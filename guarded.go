package weir

import (
	"context"
	"fmt"

	"github.com/weir-go/weir/lease"
)

// guarded calls the user's store and returns a panic as an error. New makes it, and nothing else in
// this package or in package group holds the store itself. It embeds nothing, so a new method of
// [lease.Store] cannot reach the store by promotion.
type guarded struct {
	to   lease.Store
	keep lease.Historian // nil if the store is not one
	has  lease.Abilities // as the store answered New; they never change
}

const theStore = "the store"

// guardStore returns a store whose panics are errors. It returns an error if the store panics when
// it is asked for its abilities.
func guardStore(store lease.Store) (*guarded, error) {
	s := &guarded{to: store}
	s.keep, _ = store.(lease.Historian)
	err := contained(theStore, func() error { s.has = store.Abilities(); return nil })
	return s, err
}

// Abilities returns what the store answered when the worker was made.
func (s *guarded) Abilities() lease.Abilities { return s.has }

func (s *guarded) Beat(ctx context.Context, app string, r lease.Report) (o lease.Orders, err error) {
	err = contained(theStore, func() (err error) { o, err = s.to.Beat(ctx, app, r); return err })
	return o, err
}

func (s *guarded) View(ctx context.Context, app, since string) (v lease.View, err error) {
	err = contained(theStore, func() (err error) { v, err = s.to.View(ctx, app, since); return err })
	return v, err
}

// Apply also returns an error if the store does not report for each action whether it took effect.
func (s *guarded) Apply(ctx context.Context, app string, actions []lease.Action) (did []bool, err error) {
	err = contained(theStore, func() (err error) { did, err = s.to.Apply(ctx, app, actions); return err })
	if err == nil && len(did) != len(actions) {
		err = fmt.Errorf("weir: the store answered %d of %d actions", len(did), len(actions))
	}
	return did, err
}

func (s *guarded) Lead(ctx context.Context, app, session string, term uint64) (won bool, err error) {
	err = contained(theStore, func() (err error) { won, err = s.to.Lead(ctx, app, session, term); return err })
	return won, err
}

func (s *guarded) Leave(ctx context.Context, app string, r lease.Report) error {
	return contained(theStore, func() error { return s.to.Leave(ctx, app, r) })
}

// keepsHistory reports whether PutHistory may be called.
func (s *guarded) keepsHistory() bool { return s.keep != nil && s.has.Has(lease.KeepHistory) }

// PutHistory implements [lease.Historian].
func (s *guarded) PutHistory(ctx context.Context, app string, c lease.HistoryChunk) error {
	return contained(theStore, func() error { return s.keep.PutHistory(ctx, app, c) })
}
