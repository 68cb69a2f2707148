package crowd

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// operation is a call that changes many rows. It works on the data of prepare.
type operation struct {
	name string
	do   func(ctx context.Context, s lease.Store, app string) error
}

func key(shard string) lease.Key { return lease.Key{Stream: "orders", Shard: shard} }

func operations(t testing.TB) []operation {
	after := func(seq string) shard.Position {
		p, err := shard.After(seq)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	progress := []lease.Progress{
		{Key: key("1"), Epoch: 1, Position: after("5")},
		{Key: key("2"), Epoch: 1, Position: after("6"), Release: true},
		{Key: key("3"), Epoch: 1, Position: shard.End, Children: []shard.Shard{{ID: "5", Parents: []string{"3"}}, {ID: "6", Parents: []string{"3"}}}},
	}
	beat := func(progress ...lease.Progress) func(context.Context, lease.Store, string) error {
		return func(ctx context.Context, s lease.Store, app string) error {
			_, err := s.Heartbeat(ctx, app, lease.Report{Session: "a", Progress: progress})
			return err
		}
	}
	return []operation{
		{"first beat", func(ctx context.Context, s lease.Store, app string) error {
			_, err := s.Heartbeat(ctx, app, lease.Report{Session: "c", First: true})
			return err
		}},
		{"heartbeat with checkpoints", beat(progress[0], lease.Progress{Key: key("3"), Epoch: 1, Position: after("7")})},
		{"heartbeat with releases", beat(progress...)},
		{"apply", func(ctx context.Context, s lease.Store, app string) error {
			_, err := s.Apply(ctx, app, []lease.Action{
				{Kind: lease.Create, Lease: lease.Lease{Key: key("7"), Epoch: 1, Position: shard.Oldest}},
				{Kind: lease.Assign, Key: key("4"), Epoch: 1, Session: "b"},
				{Kind: lease.Revoke, Key: key("1"), Epoch: 1},
				{Kind: lease.EndSession, Session: "b", Heartbeats: 1},
			})
			return err
		}},
		{"lead", func(ctx context.Context, s lease.Store, app string) error {
			_, err := s.Lead(ctx, app, "b", 1)
			return err
		}},
		{"leave", func(ctx context.Context, s lease.Store, app string) error {
			return s.Leave(ctx, app, lease.Report{Session: "a", Progress: progress})
		}},
	}
}

// prepare creates the sessions a and b, and the leases 1 to 4. Session a leads and owns the leases
// 1 to 3. Lease 2 has an heir. Lease 4 is free.
func prepare(t testing.TB, s lease.Store, app string) {
	t.Helper()
	for _, session := range []string{"a", "b"} {
		if _, err := s.Heartbeat(t.Context(), app, lease.Report{Session: session, First: true}); err != nil {
			t.Fatal(err)
		}
	}
	var actions []lease.Action
	for _, l := range []lease.Lease{{Key: key("1"), Owner: "a"}, {Key: key("2"), Owner: "a", Heir: "b"}, {Key: key("3"), Owner: "a"}, {Key: key("4")}} {
		l.Epoch, l.Position = 1, shard.Oldest
		actions = append(actions, lease.Action{Kind: lease.Create, Lease: l})
	}
	if _, err := s.Apply(t.Context(), app, actions); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lead(t.Context(), app, "a", 0); err != nil {
		t.Fatal(err)
	}
}

// state formats the state of an application, without heartbeat counts.
func state(t testing.TB, s lease.Store, app string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	v, err := s.View(ctx, app, "")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, l := range v.Leases {
		fmt.Fprintf(&b, "%s parents=%v last=%s\n", l, l.Parents, l.Last)
	}
	for _, w := range v.Workers {
		fmt.Fprintf(&b, "%s ended=%t\n", w.Session, w.Ended)
	}
	fmt.Fprintf(&b, "leader %q term %d\n", v.Leader.Session, v.Leader.Epoch)
	return b.String()
}
