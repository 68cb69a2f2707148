package sqltest

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Key returns the key of a lease.
func Key(id string) lease.Key { return lease.Key{Stream: "orders", Shard: id} }

// After returns the position after a record.
func After(t testing.TB, seq string) shard.Position {
	t.Helper()
	p, err := shard.After(seq)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Group creates leases with the IDs 000000 and so on. The sessions "0" and so on share them.
// Session "0" leads.
func Group(t testing.TB, s lease.Store, app string, leases, sessions int) {
	t.Helper()
	for i := range sessions {
		if _, err := s.Heartbeat(t.Context(), app, lease.Report{Session: strconv.Itoa(i), First: true}); err != nil {
			t.Fatal(err)
		}
	}
	var actions []lease.Action
	for i := range leases {
		l := lease.Lease{Key: Key(fmt.Sprintf("%06d", i)), Epoch: 1, Owner: strconv.Itoa(i % sessions), Position: shard.Oldest}
		actions = append(actions, lease.Action{Kind: lease.Create, Lease: l})
	}
	if _, err := s.Apply(t.Context(), app, actions); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lead(t.Context(), app, "0", 0); err != nil {
		t.Fatal(err)
	}
}

// Saving returns a report of session "0" that saves the same position for each of the leases.
func Saving(t testing.TB, seq string, ids ...string) lease.Report {
	t.Helper()
	r := lease.Report{Session: "0"}
	for _, id := range ids {
		r.Progress = append(r.Progress, lease.Progress{Key: Key(id), Epoch: 1, Position: After(t, seq)})
	}
	return r
}

// Calls returns all methods of a store. It is for tests of errors that each method must report.
func Calls(s lease.Store) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Heartbeat": func(ctx context.Context) error {
			_, err := s.Heartbeat(ctx, "app", lease.Report{Session: "a", First: true})
			return err
		},
		"View": func(ctx context.Context) error { _, err := s.View(ctx, "app", ""); return err },
		"Apply": func(ctx context.Context) error {
			_, err := s.Apply(ctx, "app", []lease.Action{{Kind: lease.Create, Lease: lease.Lease{Key: Key("1"), Position: shard.Oldest}}})
			return err
		},
		"Lead":  func(ctx context.Context) error { _, err := s.Lead(ctx, "app", "a", 0); return err },
		"Leave": func(ctx context.Context) error { return s.Leave(ctx, "app", lease.Report{Session: "a"}) },
	}
}
