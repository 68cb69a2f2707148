package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/sqlstore"
)

var errFault = errors.New("injected fault")

// operation is a call that changes many rows, on what prepareApp made.
type operation struct {
	name string
	do   func(ctx context.Context, s lease.Store, app string) error
}

func key(shard string) lease.Key { return lease.Key{Stream: "orders", Shard: shard} }

func after(t testing.TB, seq string) shard.Position {
	p, err := shard.After(seq)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func operations(t testing.TB) []operation {
	progress := []lease.Progress{
		{Key: key("1"), Epoch: 1, Position: after(t, "5")},
		{Key: key("2"), Epoch: 1, Position: after(t, "6"), Release: true},
		{Key: key("3"), Epoch: 1, Position: shard.End, Children: []shard.Shard{{ID: "5", Parents: []string{"3"}}, {ID: "6", Parents: []string{"3"}}}},
	}
	return []operation{
		{"first beat", func(ctx context.Context, s lease.Store, app string) error {
			_, err := s.Beat(ctx, app, lease.Report{Session: "c", First: true})
			return err
		}},
		{"beat with progress", func(ctx context.Context, s lease.Store, app string) error {
			_, err := s.Beat(ctx, app, lease.Report{Session: "a", Progress: progress})
			return err
		}},
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

// prepareApp makes sessions a and b, a leads, and owns the leases 1 to 3, of which 2 has an heir; 4 is free.
func prepareApp(t testing.TB, s lease.Store, app string) {
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
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
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
	fmt.Fprintf(&b, "leader %q term %d\n", v.Leader.Session, v.Leader.Term)
	return b.String()
}

func TestAnyStatementMayFail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	clean, _ := open(t, path)
	if err := clean.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	modes := []struct {
		name string
		set  func(h *hooks, hit func() bool, cancel func())
		busy bool // the store tries again by itself
	}{
		{"not carried out", func(h *hooks, hit func() bool, _ func()) {
			h.before = func(string) error {
				if hit() {
					return errFault
				}
				return nil
			}
		}, false},
		{"carried out, answer lost", func(h *hooks, hit func() bool, _ func()) {
			h.after = func(string) error {
				if hit() {
					return errFault
				}
				return nil
			}
		}, false},
		{"panic", func(h *hooks, hit func() bool, _ func()) {
			h.panics = hit
		}, false},
		{"context ends", func(h *hooks, hit func() bool, cancel func()) {
			h.before = func(string) error {
				if hit() {
					cancel()
				}
				return nil
			}
		}, false},
		{"busy", func(h *hooks, hit func() bool, _ func()) {
			h.before = func(string) error {
				if hit() {
					return errors.New("database is locked (5) (SQLITE_BUSY)")
				}
				return nil
			}
		}, true},
	}
	apps := 0
	for _, op := range operations(t) {
		apps++
		app := fmt.Sprint("app-", apps)
		prepareApp(t, clean, app)
		before := state(t, clean, app)
		if err := op.do(t.Context(), clean, app); err != nil {
			t.Fatal(err)
		}
		done := state(t, clean, app)
		if before == done && op.name != "first beat" {
			t.Fatalf("%s does nothing", op.name)
		}
		for _, mode := range modes {
			t.Run(op.name+"/"+mode.name, func(t *testing.T) {
				faulty, db, h := hooked(t, path)
				for n, finished := 0, false; !finished; n++ {
					apps++
					app := fmt.Sprint("app-", apps)
					prepareApp(t, clean, app)
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					statements := 0
					finished = true
					mode.set(h, func() bool {
						statements++
						if statements == n+1 {
							finished = false
						}
						return statements == n+1
					}, cancel)
					panicked, err := func() (panicked any, err error) {
						defer func() { panicked = recover() }()
						return nil, op.do(ctx, faulty, app)
					}()
					*h = hooks{}
					cancel()
					if db.Stats().InUse != 0 {
						t.Fatalf("statement %d: a connection was not given back", n)
					}
					got := state(t, clean, app)
					switch {
					case got != before && got != done:
						t.Fatalf("statement %d: half done\n%s", n, got)
					case err == nil && panicked == nil && got != done:
						t.Fatalf("statement %d: no error, but not done\n%s", n, got)
					case mode.busy && (err != nil || got != done):
						t.Fatalf("statement %d: %v", n, err)
					}
					// Neither the connection nor the file is left locked: the call can be repeated, by others and by itself.
					for _, s := range []*sqlstore.Store{clean, faulty} {
						ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
						err := op.do(ctx, s, app)
						cancel()
						if err != nil {
							t.Fatalf("statement %d: repeated: %v", n, err)
						}
					}
					if got := state(t, clean, app); got != done && op.name != "lead" {
						t.Fatalf("statement %d: repeated\n%s\nwant\n%s", n, got, done)
					}
				}
			})
		}
	}
}

func TestAnIdleBeatIsFewStatementsAndWritesNoLease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	s, _, h := hooked(t, path)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	prepareApp(t, s, "app")
	beat := func(progress ...lease.Progress) []string {
		var statements []string
		h.before = func(statement string) error {
			words := strings.Fields(statement)
			statements = append(statements, strings.Join(words[:min(len(words), 2)], " "))
			return nil
		}
		defer func() { h.before = nil }()
		if _, err := s.Beat(t.Context(), "app", lease.Report{Session: "a", Progress: progress}); err != nil {
			t.Fatal(err)
		}
		return statements
	}
	idle := []string{"PRAGMA busy_timeout", "PRAGMA synchronous", "BEGIN IMMEDIATE", "UPDATE weir_sessions", "SELECT stream,", "SELECT a.leader,", "COMMIT"}
	if got := beat(); !slices.Equal(got, idle) {
		t.Errorf("an idle beat runs %q", got)
	}
	want := slices.Insert(slices.Clone(idle), 6, "UPDATE weir_leases")
	if got := beat(lease.Progress{Key: key("1"), Epoch: 1, Position: after(t, "5")}); !slices.Equal(got, want) {
		t.Errorf("a beat with a checkpoint runs %q", got)
	}
	if got := beat(lease.Progress{Key: key("1"), Epoch: 1, Position: after(t, "5")}); !slices.Equal(got, idle) {
		t.Errorf("a beat with the same checkpoint runs %q", got)
	}
}

func TestOrdersAreReadByTheIndexOnOwners(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	s, db, h := hooked(t, path)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	prepareApp(t, s, "app")
	var read string
	h.before = func(statement string) error {
		if strings.Contains(statement, "owner = ?") {
			read = statement
		}
		return nil
	}
	if _, err := s.Beat(t.Context(), "app", lease.Report{Session: "a"}); err != nil {
		t.Fatal(err)
	}
	h.before = nil
	var id, parent, unused int
	var plan string
	if err := db.QueryRowContext(t.Context(), "EXPLAIN QUERY PLAN "+read, "app", "a").Scan(&id, &parent, &unused, &plan); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(plan, "USING INDEX weir_leases_owner (app=? AND owner=?)") {
		t.Errorf("%s\nplan: %s", read, plan)
	}
}
