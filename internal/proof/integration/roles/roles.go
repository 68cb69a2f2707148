// Package roles makes the store calls of each kind of user, for tests of the permissions that the
// user needs.
package roles

import (
	"context"
	"fmt"
	"slices"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Store is a store that an operator can use.
type Store interface {
	lease.Store
	lease.Admin
}

func key(id string) lease.Key { return lease.Key{Stream: "orders", Shard: id} }

// Work makes the calls of a worker that may become the leader. It calls every method of the
// contract, with every kind of action that a leader plans.
func Work(ctx context.Context, st lease.Store, app string) error {
	do := func(actions ...lease.Action) error {
		done, err := st.Apply(ctx, app, actions)
		if i := slices.Index(done, false); err == nil && i >= 0 {
			err = fmt.Errorf("%s did not take effect", actions[i])
		}
		return err
	}
	beat := func(r lease.Report) error { _, err := st.Heartbeat(ctx, app, r); return err }
	fresh := func(id string) lease.Action {
		return lease.Action{Kind: lease.Create, Lease: lease.Lease{Key: key(id), Epoch: 1, Position: shard.Oldest}}
	}
	of := func(kind lease.Kind, id string, epoch uint64, session string) lease.Action {
		return lease.Action{Kind: kind, Key: key(id), Epoch: epoch, Session: session}
	}
	seq, err := shard.After("17")
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { _, err := st.View(ctx, app, ""); return err },
		func() error { return beat(lease.Report{Session: "a", First: true}) },
		func() error { return beat(lease.Report{Session: "b", First: true}) },
		func() error { return beat(lease.Report{Session: "c", First: true}) },
		func() error { _, err := st.Lead(ctx, app, "a", 0); return err },
		func() error { return do(fresh("1"), fresh("2"), fresh("3"), fresh("4")) },
		func() error {
			return do(of(lease.Assign, "1", 1, "a"), of(lease.Assign, "2", 1, "a"), of(lease.Assign, "3", 1, "a"), of(lease.Handoff, "2", 2, "b"))
		},
		func() error {
			return beat(lease.Report{Session: "a", Progress: []lease.Progress{{Key: key("1"), Epoch: 2, Position: seq, Load: 9}, {Key: key("2"), Epoch: 2, Release: true}}})
		},
		func() error {
			return beat(lease.Report{Session: "a", Progress: []lease.Progress{{Key: key("1"), Epoch: 2, Position: seq, Load: 7}}})
		},
		func() error {
			return beat(lease.Report{Session: "a", Progress: []lease.Progress{{Key: key("3"), Epoch: 2, Position: shard.End, Children: []shard.Shard{{ID: "5", Parents: []string{"3"}}}}}})
		},
		func() error {
			return do(of(lease.Revoke, "1", 2, ""), of(lease.Delete, "4", 1, ""), lease.Action{Kind: lease.Replace, Key: key("5"), Epoch: 1, Lease: lease.Lease{Key: key("5"), Epoch: 2}},
				lease.Action{Kind: lease.Birth, Key: key("5"), Epoch: 2, Born: 1}, lease.Action{Kind: lease.EndSession, Session: "c", Heartbeats: 1}, lease.Action{Kind: lease.Forget, Session: "c"})
		},
		func() error { return do(lease.Action{Kind: lease.Tell, Session: "b"}) },
		func() error { return report(ctx, st, app) },
		func() error { return beat(lease.Report{Session: "b"}) },
		func() error { return beat(lease.Report{Session: "b"}) }, // it knows the leader by now
		func() error { return st.Leave(ctx, app, lease.Report{Session: "a"}) },
		func() error { return st.Leave(ctx, app, lease.Report{Session: "b"}) },
		func() error { _, err := st.View(ctx, app, ""); return err },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// Change makes the calls of an operator.
func Change(ctx context.Context, st Store, app string) error {
	if err := Look(ctx, st, app); err != nil {
		return err
	}
	for _, a := range []lease.Action{
		{Kind: lease.Create, Lease: lease.Lease{Key: key("1"), Epoch: 1}}, {Kind: lease.Move, Key: key("1"), Epoch: 1, Position: shard.Oldest},
		{Kind: lease.Pause, Stream: "orders", On: true}, {Kind: lease.Drain, Session: "a", On: true},
	} {
		if _, err := st.Apply(ctx, app, []lease.Action{a}); err != nil {
			return err
		}
	}
	return st.Remove(ctx, app)
}

// Look makes the calls of an operator without write permissions.
func Look(ctx context.Context, st Store, app string) error {
	if _, err := st.Apps(ctx); err != nil {
		return err
	}
	if h, can := st.(lease.Historian); can {
		if _, err := h.History(ctx, app, 0); err != nil {
			return err
		}
	}
	_, err := st.View(ctx, app, "")
	return err
}

// report stores a chunk of history, replaces it, and stores a later one, which makes it expire.
func report(ctx context.Context, st lease.Store, app string) error {
	h, can := st.(lease.Historian)
	if !can {
		return nil
	}
	for _, minute := range []int64{1, 1, 1_000_000} {
		if err := h.PutHistory(ctx, app, lease.HistoryChunk{Session: "a", Since: minute, Data: []byte("x")}); err != nil {
			return err
		}
	}
	return nil
}
