package mysql_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/weir-go/weir/internal/integration/servers"
	"github.com/weir-go/weir/internal/integration/statements"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/sqlstore"
)

func key(id string) lease.Key { return lease.Key{Stream: "orders", Shard: id} }

func after(t testing.TB, seq string) shard.Position {
	t.Helper()
	p, err := shard.After(seq)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// group makes n leases, shared by some sessions, of which "0" leads.
func group(t testing.TB, s *sqlstore.Store, app string, leases, sessions int) {
	t.Helper()
	for i := range sessions {
		if _, err := s.Beat(t.Context(), app, lease.Report{Session: strconv.Itoa(i), First: true}); err != nil {
			t.Fatal(err)
		}
	}
	var actions []lease.Action
	for i := range leases {
		l := lease.Lease{Key: key(fmt.Sprintf("%06d", i)), Epoch: 1, Owner: strconv.Itoa(i % sessions), Position: shard.Oldest}
		actions = append(actions, lease.Action{Kind: lease.Create, Lease: l})
	}
	if _, err := s.Apply(t.Context(), app, actions); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lead(t.Context(), app, "0", 0); err != nil {
		t.Fatal(err)
	}
}

// counted is a store whose statements are written down.
func counted(t testing.TB, dsn string) (*sqlstore.Store, *statements.Log) {
	t.Helper()
	db, log := statements.Open(t, "mysql", dsn)
	s, err := sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.MySQL})
	if err != nil {
		t.Fatal(err)
	}
	return s, log
}

func TestABeatIsAFewStatementsHoweverManyLeasesAndWorkersThereAre(t *testing.T) {
	dsn := servers.MariaDB(t).MySQLDSN("weir")
	migrated(t, dsn)
	for _, size := range []struct{ leases, sessions int }{{4, 2}, {2000, 50}} {
		s, log := counted(t, dsn)
		app := fmt.Sprint("app-", size.leases)
		group(t, s, app, size.leases, size.sessions)
		mine := size.leases / size.sessions
		beat := func(progress ...lease.Progress) (int, []string) {
			log.Take()
			o, err := s.Beat(t.Context(), app, lease.Report{Session: "0", Progress: progress})
			if err != nil {
				t.Fatal(err)
			}
			return len(o.Held), log.Take()
		}
		if held, said := beat(); held != mine || !slices.Equal(said, []string{"UPDATE weir_sessions", "SELECT me.beat,"}) {
			t.Errorf("an idle beat, %d held, says %q", held, said)
		}
		var progress []lease.Progress
		for i := range mine {
			progress = append(progress, lease.Progress{Key: key(fmt.Sprintf("%06d", i*size.sessions)), Epoch: 1, Position: after(t, "7"), Load: 9})
		}
		if held, said := beat(progress...); held != mine || !slices.Equal(said, []string{"UPDATE weir_sessions", "UPDATE (SELECT", "UPDATE (SELECT", "SELECT me.beat,"}) {
			t.Errorf("a beat with %d checkpoints, %d held, says %q", len(progress), held, said)
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
		// A thousand leases given out are a few statements too.
		var assigns []lease.Action
		for _, l := range v.Leases {
			assigns = append(assigns, lease.Action{Kind: lease.Assign, Key: l.Key, Epoch: l.Epoch, Session: "1"})
		}
		done, err := s.Apply(t.Context(), app, assigns)
		if err != nil || slices.Contains(done, false) {
			t.Errorf("Apply: %v", err)
		}
		if said := log.Take(); len(said) > 5+2*((size.leases+199)/200) {
			t.Errorf("%d assigns are %d statements: %q", len(assigns), len(said), said)
		}
	}
}
