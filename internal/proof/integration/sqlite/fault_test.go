package sqlite

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/crowd"
	"github.com/weir-go/weir/internal/proof/integration/sqltest"
	"github.com/weir-go/weir/lease"
)

var errFault = errors.New("injected fault")

func TestAnyStatementMayFail(t *testing.T) {
	path := empty(t)
	clean, _ := sqlite.Migrated(t, path)
	for _, c := range []struct {
		name string
		set  func(h *hooks, hit func() bool, cancel func())
		busy bool // the store itself retries
	}{
		{"not carried out", func(h *hooks, hit func() bool, _ func()) {
			h.before = failing(hit, errFault)
		}, false},
		{"carried out, answer lost", func(h *hooks, hit func() bool, _ func()) {
			h.after = failing(hit, errFault)
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
			h.before = failing(hit, errors.New("database is locked (5) (SQLITE_BUSY)"))
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			faulty, db, h := hooked(t, path)
			statements, wanted := 0, 0
			crowd.Faults(t, clean, crowd.Fault{
				Store: faulty,
				At: func(n int, cancel context.CancelFunc) {
					statements, wanted, *h = 0, n, hooks{}
					if n > 0 {
						c.set(h, func() bool { statements++; return statements == n }, cancel)
					}
				},
				Happened: func() bool { return statements >= wanted },
				Panics:   c.name == "panic",
				Mended:   c.busy,
				Check: func(t *testing.T) {
					// Neither the connection nor the file may stay locked.
					if db.Stats().InUse != 0 {
						t.Fatal("a connection was not given back")
					}
				},
			})
		})
	}
}

// failing returns a hook that fails the selected statement.
func failing(hit func() bool, err error) func(string) error {
	return func(string) error {
		if hit() {
			return err
		}
		return nil
	}
}

func TestAnIdleBeatIsFewStatementsAndWritesNoLease(t *testing.T) {
	path := empty(t)
	s, _, h := hooked(t, path)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	sqltest.Group(t, s, "app", 2, 1)
	beat := func(r lease.Report) []string {
		var statements []string
		h.before = func(statement string) error {
			words := strings.Fields(statement)
			statements = append(statements, strings.Join(words[:min(len(words), 2)], " "))
			return nil
		}
		defer func() { h.before = nil }()
		if _, err := s.Heartbeat(t.Context(), "app", r); err != nil {
			t.Fatal(err)
		}
		return statements
	}
	idle := []string{"PRAGMA busy_timeout", "PRAGMA synchronous", "BEGIN IMMEDIATE", "UPDATE weir_sessions", "SELECT stream,", "SELECT a.leader,", "COMMIT"}
	if got := beat(lease.Report{Session: "0"}); !slices.Equal(got, idle) {
		t.Errorf("an idle beat runs %q", got)
	}
	want := slices.Insert(slices.Clone(idle), 6, "UPDATE weir_leases")
	if got := beat(sqltest.Saving(t, "5", "000000")); !slices.Equal(got, want) {
		t.Errorf("a beat with a checkpoint runs %q", got)
	}
	if got := beat(sqltest.Saving(t, "5", "000000")); !slices.Equal(got, idle) {
		t.Errorf("a beat with the same checkpoint runs %q", got)
	}
}

func TestOrdersAreReadByTheIndexOnOwners(t *testing.T) {
	path := empty(t)
	s, db, h := hooked(t, path)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	sqltest.Group(t, s, "app", 2, 1)
	var read string
	h.before = func(statement string) error {
		if strings.Contains(statement, "owner = ?") {
			read = statement
		}
		return nil
	}
	if _, err := s.Heartbeat(t.Context(), "app", lease.Report{Session: "0"}); err != nil {
		t.Fatal(err)
	}
	h.before = nil
	var id, parent, unused int
	var plan string
	if err := db.QueryRowContext(t.Context(), "EXPLAIN QUERY PLAN "+read, "app", "0").Scan(&id, &parent, &unused, &plan); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(plan, "USING INDEX weir_leases_owner (app=? AND owner=?)") {
		t.Errorf("%s\nplan: %s", read, plan)
	}
}
