package group

import (
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// Leases may keep the name of a worker that has ended. They do not count as held.
func TestAWorkerThatHasEndedHoldsNothing(t *testing.T) {
	mem := memstore.New()
	for _, s := range []string{"A", "B"} {
		if _, err := mem.Heartbeat(t.Context(), "a", lease.Report{Session: s, Name: s, First: true}); err != nil {
			t.Fatal(err)
		}
	}
	apply := func(actions ...lease.Action) {
		t.Helper()
		for _, a := range actions {
			if did, err := mem.Apply(t.Context(), "a", []lease.Action{a}); err != nil || !did[0] {
				t.Fatalf("%+v: %v, %v", a, did, err)
			}
		}
	}
	for i, owner := range []string{"A", "B", ""} {
		k := lease.Key{Stream: "s", Shard: string(rune('0' + i))}
		apply(lease.Action{Kind: lease.Create, Lease: lease.Lease{Key: k, Epoch: 1, Position: shard.Oldest, Range: shard.HashRange{End: shard.MaxHashKey}}})
		if owner != "" {
			apply(lease.Action{Kind: lease.Assign, Key: k, Epoch: 1, Session: owner})
		}
	}
	look := func() lease.View {
		v, err := mem.View(t.Context(), "a", "")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := look(); heldOf(v, "") != 2 || unread(v, "") != 1 || (&appLook{app: "a", view: v}).summary().Held != 2 {
		t.Fatalf("while both live: %d held, %d unread", heldOf(v, ""), unread(v, ""))
	}
	var beat uint64
	for _, w := range look().Workers {
		if w.Session == "A" {
			beat = w.Heartbeats
		}
	}
	apply(lease.Action{Kind: lease.EndSession, Session: "A", Heartbeats: beat})
	v := look()
	if heldOf(v, "s") != 1 || unread(v, "s") != 2 || (&appLook{app: "a", view: v}).summary().Held != 1 {
		t.Errorf("when one has ended: %d held, %d unread", heldOf(v, "s"), unread(v, "s"))
	}
	apply(lease.Action{Kind: lease.EndSession, Session: "B", Heartbeats: v.Workers[len(v.Workers)-1].Heartbeats})
	_, err := await(t.Context(), cli.Silent, stores.Store{Store: mem}, "a", time.Minute, "still held", func(v lease.View) int { return heldOf(v, "") })
	if err != nil {
		t.Error(err)
	}
}

func TestLeasesAreCountedInSentences(t *testing.T) {
	for want, n := range map[string]int{"0 leases are still held": 0, "1 lease is still held": 1, "2 leases are still held": 2} {
		if got := these(n, "still held"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
