package sqltest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/integration/statements"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/sqlstore"
)

// Counted returns a store whose statements are logged.
func (s Server) Counted(t testing.TB, dsn string) (*sqlstore.Store, *statements.Log) {
	t.Helper()
	db, log := statements.Open(t, s.Driver, dsn)
	store, err := sqlstore.New(db, sqlstore.Options{Dialect: s.Dialect})
	if err != nil {
		t.Fatal(err)
	}
	return store, log
}

func statementsOfABeat(t *testing.T, server Server, d *servers.Database) {
	dsn := server.Fresh(t, d)
	server.Migrated(t, dsn)
	for _, size := range []struct{ leases, sessions int }{{4, 2}, {2000, 50}} {
		s, log := server.Counted(t, dsn)
		app := fmt.Sprint("app-", size.leases)
		Group(t, s, app, size.leases, size.sessions)
		mine := size.leases / size.sessions
		beat := func(r lease.Report) (int, []string) {
			log.Take()
			o, err := s.Heartbeat(t.Context(), app, r)
			if err != nil {
				t.Fatal(err)
			}
			return len(o.Held), log.Take()
		}
		if held, said := beat(lease.Report{Session: "0"}); held != mine || !slices.Equal(said, server.Idle) {
			t.Errorf("an idle beat, %d held, says %q", held, said)
		}
		var ids []string
		for i := range mine {
			ids = append(ids, fmt.Sprintf("%06d", i*size.sessions))
		}
		r := Saving(t, "7", ids...)
		for i := range r.Progress {
			r.Progress[i].Rate, r.Progress[i].Load = lease.Measured(23)
		}
		if held, said := beat(r); held != mine || !slices.Equal(said, server.Saving) {
			t.Errorf("a beat with %d checkpoints, %d held, says %q", len(r.Progress), held, said)
		}
		v, err := s.View(t.Context(), app, "")
		if err != nil {
			t.Fatal(err)
		}
		moved := 0
		for _, l := range v.Leases {
			if l.Position.String() == "7" && l.Load == 9 {
				moved++
			}
		}
		if moved != mine {
			t.Errorf("%d leases stand at 7 with load 9, want %d", moved, mine)
		}
		log.Take()
		if v, err := s.View(t.Context(), app, v.Revision); err != nil || !v.Same {
			t.Errorf("a look: same=%t, %v", v.Same, err)
		}
		if said := log.Take(); !slices.Equal(said, []string{"SELECT a.leader,", "SELECT session,"}) {
			t.Errorf("a look with nothing new says %q", said)
		}
		// Assigning a thousand leases takes few statements too.
		var assigns []lease.Action
		for _, l := range v.Leases {
			assigns = append(assigns, lease.Action{Kind: lease.Assign, Key: l.Key, Epoch: l.Epoch, Session: "1"})
		}
		done, err := s.Apply(t.Context(), app, assigns)
		if err != nil || slices.Contains(done, false) {
			t.Errorf("Apply: %v", err)
		}
		if said := log.Take(); len(said) > server.Assigning+2*((size.leases+199)/200) {
			t.Errorf("%d assigns are %d statements: %q", len(assigns), len(said), said)
		}
	}
}
