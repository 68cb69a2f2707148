package weir

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/weir-go/weir/lease"
)

// contained is a store whose panics are errors. The calls are made by the beat loop and the leader,
// where a panic would end the process.
type contained struct{ lease.Store }

func contain(op string, err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("weir: the store panicked in %s: %v\n%s", op, p, debug.Stack())
	}
}

func (s contained) Beat(ctx context.Context, app string, r lease.Report) (o lease.Orders, err error) {
	defer contain("Beat", &err)
	return s.Store.Beat(ctx, app, r)
}

func (s contained) View(ctx context.Context, app, since string) (v lease.View, err error) {
	defer contain("View", &err)
	return s.Store.View(ctx, app, since)
}

func (s contained) Apply(ctx context.Context, app string, actions []lease.Action) (did []bool, err error) {
	defer contain("Apply", &err)
	return s.Store.Apply(ctx, app, actions)
}

func (s contained) Lead(ctx context.Context, app, session string, term uint64) (won bool, err error) {
	defer contain("Lead", &err)
	return s.Store.Lead(ctx, app, session, term)
}

func (s contained) Leave(ctx context.Context, app string, r lease.Report) (err error) {
	defer contain("Leave", &err)
	return s.Store.Leave(ctx, app, r)
}
