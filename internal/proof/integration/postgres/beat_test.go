package postgres_test

import (
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/sqltest"
	"github.com/weir-go/weir/store/sqlstore"
)

// A heartbeat must not read the leases of other workers, whether there are table statistics or not.
func TestBeatsReadTheSessionsLeasesOnly(t *testing.T) {
	const leases, sessions, beats = 5000, 50, 20
	dsn := postgres.Weir(postgres.Start(t))
	s, _ := postgres.Migrated(t, dsn)
	sqltest.Group(t, s, "app", leases, sessions)
	_, db := postgres.Open(t, dsn, sqlstore.Options{})
	db.SetMaxOpenConns(1)
	read := func() (rows int) {
		// Without this command, Postgres may return counts that it read earlier.
		sqltest.Exec(t, db, "SELECT pg_stat_clear_snapshot()")
		if err := db.QueryRowContext(t.Context(), "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'weir_leases'").Scan(&rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	r := sqltest.Saving(t, "5", "000007")
	r.Session = "7"
	for _, prepare := range []string{"SELECT 1", "ANALYZE"} {
		sqltest.Exec(t, db, prepare)
		s, own := postgres.Open(t, dsn, sqlstore.Options{})
		own.SetMaxOpenConns(1)
		before := read()
		for range beats + 1 { // the first one checks the schema
			o, err := s.Heartbeat(t.Context(), "app", r)
			if err != nil || len(o.Held) != leases/sessions {
				t.Fatalf("%d held, %v", len(o.Held), err)
			}
		}
		sqltest.Exec(t, own, "SELECT pg_stat_force_next_flush()")
		own.Close()
		got := read()
		for got == before {
			got = read()
		}
		if each := (got - before) / beats; each > 3*leases/sessions {
			t.Errorf("after %s a heartbeat reads %d rows of leases, and holds %d", prepare, each, leases/sessions)
		}
	}
}
