package mysql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/sqltest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// The statements of a heartbeat are separate transactions, so other transactions may run between
// them.
func TestABeatWhoseSessionIsEndedInItsMidstHoldsNothing(t *testing.T) {
	both(t, func(t *testing.T, server sqltest.Server, _ string) {
		dsn := server.Weir(server.Start(t))
		clean, _ := server.Migrated(t, dsn)
		sqltest.Group(t, clean, "app", 4, 2)
		s, log := server.Counted(t, dsn)
		if _, err := s.Heartbeat(t.Context(), "app", lease.Report{Session: "0"}); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{"UPDATE (SELECT", "SELECT me.beat"} {
			ended := false
			log.Before(func(statement string) {
				if ended || !strings.HasPrefix(statement, at) {
					return
				}
				ended = true
				v, err := clean.View(t.Context(), "app", "")
				if err != nil {
					t.Error(err)
					return
				}
				var actions []lease.Action
				for _, w := range v.Workers {
					actions = append(actions, lease.Action{Kind: lease.EndSession, Session: w.Session, Heartbeats: w.Heartbeats})
				}
				for _, l := range v.Leases {
					actions = append(actions, lease.Action{Kind: lease.Assign, Key: l.Key, Epoch: l.Epoch, Session: "new"})
				}
				if _, err := clean.Apply(t.Context(), "app", actions); err != nil {
					t.Error(err)
				}
			})
			_, err := s.Heartbeat(t.Context(), "app", sqltest.Saving(t, "5", "000000"))
			if !errors.Is(err, lease.ErrSessionOver) || !ended {
				t.Errorf("ended before %q: %v", at, err)
			}
			log.Before(nil)
			v, err := clean.View(t.Context(), "app", "")
			if err != nil {
				t.Fatal(err)
			}
			if l := v.Leases[0]; l.Owner != "new" || at == "UPDATE (SELECT" && l.Position != shard.Oldest {
				t.Errorf("ended before %q: lease %s", at, l)
			}
			if err := clean.Remove(t.Context(), "app"); err != nil {
				t.Fatal(err)
			}
			sqltest.Group(t, clean, "app", 4, 2)
		}
	})
}

// A heartbeat must not read the leases of other workers.
func TestBeatsReadTheSessionsLeasesOnly(t *testing.T) {
	both(t, func(t *testing.T, server sqltest.Server, status string) {
		const leases, sessions, beats = 5000, 50, 20
		s, db := server.Migrated(t, server.Weir(server.Start(t)))
		sqltest.Group(t, s, "app", leases, sessions)
		read := func() (rows int) {
			if err := db.QueryRowContext(t.Context(), "SELECT sum(variable_value) FROM "+status+" WHERE variable_name LIKE 'Handler_read%'").Scan(&rows); err != nil {
				t.Fatal(err)
			}
			return rows
		}
		r := sqltest.Saving(t, "5", "000007")
		r.Session = "7"
		before, own := read(), 0
		own = read() - before // the cost of the query itself
		before = read()
		for range beats {
			o, err := s.Heartbeat(t.Context(), "app", r)
			if err != nil || len(o.Held) != leases/sessions {
				t.Fatalf("%d held, %v", len(o.Held), err)
			}
		}
		// Each of the worker's own rows is read up to three times, through the index.
		if each := (read() - before - own) / beats; each > 4*leases/sessions {
			t.Errorf("a heartbeat reads %d rows, and holds %d", each, leases/sessions)
		}
	})
}
