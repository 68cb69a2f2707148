package weir

import (
	"context"

	"github.com/weir-go/weir/lease"
)

// guarded is a store whose panics are errors. Its calls are made by the beat loop and the leader,
// where a panic would end the process.
type guarded struct{ lease.Store }

const theStore = "the store"

func (s guarded) Beat(ctx context.Context, app string, r lease.Report) (o lease.Orders, err error) {
	err = contained(theStore, func() (err error) { o, err = s.Store.Beat(ctx, app, r); return err })
	return o, err
}

func (s guarded) View(ctx context.Context, app, since string) (v lease.View, err error) {
	err = contained(theStore, func() (err error) { v, err = s.Store.View(ctx, app, since); return err })
	return v, err
}

func (s guarded) Apply(ctx context.Context, app string, actions []lease.Action) (did []bool, err error) {
	err = contained(theStore, func() (err error) { did, err = s.Store.Apply(ctx, app, actions); return err })
	return did, err
}

func (s guarded) Lead(ctx context.Context, app, session string, term uint64) (won bool, err error) {
	err = contained(theStore, func() (err error) { won, err = s.Store.Lead(ctx, app, session, term); return err })
	return won, err
}

func (s guarded) Leave(ctx context.Context, app string, r lease.Report) error {
	return contained(theStore, func() error { return s.Store.Leave(ctx, app, r) })
}
