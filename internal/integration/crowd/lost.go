package crowd

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/weir-go/weir/internal/integration/servers"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// LostAnswers is a test of a store, reached through a connection on which answers can be lost after the server did what it was told:
// lose n makes the nth answer from then on get lost (0: none), and lost reports whether that has happened. Whatever answer of each
// call is lost, the application is either as before or as after it, and repeating the call leaves it as after it.
func LostAnswers(t *testing.T, clean, faulty lease.Store, lose func(n int), lost func() bool) {
	apps := 0
	fresh := func(t *testing.T) string {
		apps++
		app := fmt.Sprintf("%s-%d", strings.ToLower(t.Name()), apps)
		prepare(t, clean, app)
		return app
	}
	for _, op := range operations(t) {
		t.Run(op.name, func(t *testing.T) {
			app := fresh(t)
			before := state(t, clean, app)
			if err := op.do(t.Context(), clean, app); err != nil {
				t.Fatal(err)
			}
			after := state(t, clean, app)
			if before == after {
				t.Fatalf("%s does nothing", op.name)
			}
			happened := 0
			for n := 1; ; n++ {
				app := fresh(t)
				lose(n)
				err := op.do(t.Context(), faulty, app)
				was := lost()
				lose(0)
				got := state(t, clean, app)
				if got != before && got != after {
					t.Fatalf("answer %d: half done\n%s", n, got)
				}
				if err == nil && got != after {
					t.Fatalf("answer %d: no error, but not done\n%s", n, got)
				}
				for _, s := range []lease.Store{faulty, clean} {
					if err := op.do(t.Context(), s, app); err != nil {
						t.Fatalf("answer %d: repeated: %v", n, err)
					}
				}
				if got := state(t, clean, app); got != after {
					t.Fatalf("answer %d: repeated\n%s\nwant\n%s", n, got, after)
				}
				if !was {
					break
				}
				happened++
			}
			if happened == 0 {
				t.Error("no answer got lost")
			}
			t.Logf("each of %d answers got lost once", happened)
		})
	}
}

// operation is a call that changes many rows, on what prepare made.
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
			_, err := s.Beat(ctx, app, lease.Report{Session: "a", Progress: progress})
			return err
		}
	}
	return []operation{
		{"first beat", func(ctx context.Context, s lease.Store, app string) error {
			_, err := s.Beat(ctx, app, lease.Report{Session: "c", First: true})
			return err
		}},
		{"beat with checkpoints", beat(progress[0], lease.Progress{Key: key("3"), Epoch: 1, Position: after("7")})},
		{"beat with releases", beat(progress...)},
		{"apply", func(ctx context.Context, s lease.Store, app string) error {
			_, err := s.Apply(ctx, app, []lease.Action{
				{Kind: lease.Create, Lease: lease.Lease{Key: key("7"), Epoch: 1, Position: shard.Oldest}},
				{Kind: lease.Assign, Key: key("4"), Epoch: 1, Session: "b"},
				{Kind: lease.Revoke, Key: key("1"), Epoch: 1},
				{Kind: lease.EndSession, Session: "b", Beat: 1},
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

// prepare makes sessions a and b; a leads, and owns the leases 1 to 3, of which 2 has an heir; 4 is free.
func prepare(t testing.TB, s lease.Store, app string) {
	t.Helper()
	for _, session := range []string{"a", "b"} {
		if _, err := s.Beat(t.Context(), app, lease.Report{Session: session, First: true}); err != nil {
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

// state is what an application looks like but for beat counts.
func state(t testing.TB, s lease.Store, app string) string {
	t.Helper()
	v, err := s.View(t.Context(), app, "")
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
	fmt.Fprintf(&b, "leader %q term %d\n", v.Leader.Session, v.Leader.Term)
	return b.String()
}

// Losing counts what a client sends through a proxy, to lose the answer of just one.
func Losing(p *servers.Proxy) (lose func(n int), lost func() bool) {
	var mu sync.Mutex
	wanted, sent, hit := 0, 0, false
	p.CutAnswers(func([]byte) bool {
		mu.Lock()
		defer mu.Unlock()
		sent++
		if sent != wanted {
			return false
		}
		hit = true
		return true
	})
	lose = func(n int) {
		mu.Lock()
		defer mu.Unlock()
		wanted, sent, hit = n, 0, false
	}
	return lose, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return hit
	}
}
