package costs_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/integration/statements"
	"github.com/weir-go/weir/store/sqlstore"
)

// sqlMeter counts statements in the driver. If counted is set, it counts rows with the counters of
// the server.
func sqlMeter(log *statements.Log, counted func() (read, written float64)) func(do func()) cost {
	return func(do func()) cost {
		var read, written float64
		if counted != nil {
			read, written = counted()
		}
		log.Take()
		do()
		said := log.Take()
		c := cost{requests: len(said), kinds: map[string]int{}}
		for _, s := range said {
			c.kinds[s]++
		}
		if counted != nil {
			c.reads, c.writes = counted()
			c.reads, c.writes = c.reads-read, c.writes-written
		}
		return c
	}
}

// openSQL opens a store with its tables and counts its statements. The store has one connection,
// like the heartbeats of one worker.
func openSQL(t testing.TB, driver, dsn string, d sqlstore.Dialect, prefix string) (*sqlstore.Store, *sql.DB, *statements.Log) {
	t.Helper()
	db, log := statements.Open(t, driver, dsn)
	db.SetMaxOpenConns(1)
	s, err := sqlstore.New(db, sqlstore.Options{Dialect: d, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, db, log
}

// postgres opens a store with its own tables, and counts the rows of these tables.
func postgres(t testing.TB, dsn, prefix string) measured {
	t.Helper()
	s, db, log := openSQL(t, "pgx", dsn, sqlstore.Postgres, prefix)
	other, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	counted := func() (read, written float64) {
		// The counts of a connection reach the server with this command, or later.
		if _, err := db.ExecContext(t.Context(), "SELECT pg_stat_force_next_flush()"); err != nil {
			t.Fatal(err)
		}
		row := other.QueryRowContext(t.Context(), `SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), sum(n_tup_ins + n_tup_upd + n_tup_del)
			FROM pg_stat_user_tables WHERE relname LIKE $1`, prefix+"%")
		if err := row.Scan(&read, &written); err != nil {
			t.Fatal(err)
		}
		return read, written
	}
	return measured{t, s, sqlMeter(log, counted)}
}

// mysql opens a store and counts only statements.
func mysql(t testing.TB, dsn, prefix string) measured {
	t.Helper()
	s, _, log := openSQL(t, "mysql", dsn, sqlstore.MySQL, prefix)
	return measured{t, s, sqlMeter(log, nil)}
}

// TestSQL prints statements and rows, and checks the documented cost of idle heartbeats.
func TestSQL(t *testing.T) {
	for _, c := range []struct {
		name       string
		start      func(testing.TB) *servers.Database
		open       func(t testing.TB, d *servers.Database, prefix string) measured
		statements int // number of statements for an idle heartbeat
		rows       bool
	}{
		{"Postgres", servers.Postgres, func(t testing.TB, d *servers.Database, prefix string) measured {
			return postgres(t, d.PostgresURL("weir"), prefix)
		}, 1, true},
		{"MariaDB", servers.MariaDB, func(t testing.TB, d *servers.Database, prefix string) measured {
			return mysql(t, d.MySQLDSN("weir"), prefix)
		}, 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := c.start(t)
			rows := map[[2]int]float64{} // rows for the heartbeats of all workers
			for _, size := range [][2]int{{100, 5}, {100, 20}, {1000, 5}, {1000, 20}} {
				leases, workers := size[0], size[1]
				g := assemble(c.open(t, d, fmt.Sprintf("costs_%d_%d_", leases, workers)), leases, workers)
				i := g.idling()
				t.Logf("%d leases, %d workers", leases, workers)
				written, read := "rows written", "rows read"
				if !c.rows {
					written, read = "(rows are not counted)", ""
				}
				show(t, "  an idle heartbeat", i.beat, written, read)
				show(t, "  a look with nothing new", i.look, written, read)
				show(t, "  a full look", i.full, written, read)
				rows[size] = float64(workers) * (i.beat.reads + i.beat.writes)
				if i.beat.requests != c.statements {
					t.Errorf("an idle heartbeat is %d statements", i.beat.requests)
				}
				if c.rows && (i.beat.writes != 1 || i.look.writes > 0) {
					t.Errorf("an idle heartbeat writes %v rows, a look %v", i.beat.writes, i.look.writes)
				}
				// Without statistics, the planner may read the worker's own leases twice. Reading
				// all leases would be far more.
				if own := float64(leases / workers); c.rows && i.beat.reads > 3*own+2*float64(workers)+10 {
					t.Errorf("an idle heartbeat reads %v rows; its worker holds %v leases, and there are %d sessions", i.beat.reads, own, workers)
				}
				if leases == 1000 && workers == 20 {
					for _, e := range g.events() {
						show(t, "  "+e.name, g.meter(e.do), written, read)
					}
				}
			}
			grows(t, "the rows of all workers' heartbeats", func(leases, workers int) float64 { return rows[[2]int{leases, workers}] })
		})
	}
}
