// Package postgres_test runs the contract of stores with sqlstore on a real Postgres.
package postgres_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/crowd"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/integration/sqltest"
	"github.com/weir-go/weir/internal/proof/integration/worker"
	"github.com/weir-go/weir/store/sqlstore"
)

var postgres = sqltest.Server{
	Kind:  sqltest.Kind{Driver: "pgx", Dialect: sqlstore.Postgres},
	Start: servers.Postgres,
	DSN:   (*servers.Database).PostgresURL,
	Home:  "postgres",
	Other: `CREATE SCHEMA "order"`,
	Tables: `SELECT string_agg(table_name || '.' || column_name || ' ' || data_type || ' ' || coalesce(collation_name, ''), E'\n'
		ORDER BY table_name, ordinal_position) || (SELECT string_agg(indexdef, E'\n' ORDER BY indexdef) FROM pg_indexes WHERE schemaname = 'public')
		FROM information_schema.columns WHERE table_schema = 'public'`,
	Setup: mayNot,

	Hold:    []string{"LOCK TABLE weir_applications, weir_sessions, weir_leases IN EXCLUSIVE MODE"},
	Waiting: "SELECT count(*) FROM pg_locks WHERE NOT granted", Look: 5 * time.Millisecond,
	Deadlock: "40P01",

	Page:   "Postgres",
	Closed: []string{"REVOKE ALL ON SCHEMA public FROM PUBLIC"},

	Idle:      []string{"WITH me"},
	Saving:    []string{"WITH me"},
	Assigning: 4,
}

func mayNot(s sqltest.Server, d *servers.Database) []sqltest.SetupCase {
	return []sqltest.SetupCase{{Name: "a user that may not", Prepare: func(t *testing.T) *sqlstore.Store {
		dsn := s.Fresh(t, d)
		_, db := s.Migrated(t, dsn)
		sqltest.Exec(t, db, "CREATE USER reader")
		store, _ := s.Open(t, strings.Replace(dsn, "weir@", "reader@", 1), sqlstore.Options{})
		return store
	}, Want: "grant it SELECT", Migrate: "grant it SELECT"}}
}

func TestMain(m *testing.M) {
	worker.Main()
	crowd.Main(m, postgres.Place)
}

func TestPostgres(t *testing.T) { sqltest.Run(t, postgres) }

func BenchmarkStore(b *testing.B) { sqltest.Bench(b, postgres) }
