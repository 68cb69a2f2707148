// Package postgres_test holds sqlstore to the store contract on a real Postgres.
package postgres_test

import (
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/weir-go/weir/internal/integration/crowd"
	"github.com/weir-go/weir/internal/integration/servers"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/sqlstore"
	"github.com/weir-go/weir/store/storetest"
)

func TestMain(m *testing.M) {
	crowd.Main(m, func(dsn string) (lease.Store, error) {
		db, err := sql.Open("pgx", dsn)
		if err != nil {
			return nil, err
		}
		return sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.Postgres})
	})
}

// open opens a store as another process would.
func open(t testing.TB, dsn string, o sqlstore.Options) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(10)
	o.Dialect = sqlstore.Postgres
	s, err := sqlstore.New(db, o)
	if err != nil {
		t.Fatal(err)
	}
	return s, db
}

// migrated is a store with tables.
func migrated(t testing.TB, dsn string) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	s, db := open(t, dsn, sqlstore.Options{})
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, db
}

var databases atomic.Int32

// fresh makes another database.
func fresh(t testing.TB, d *servers.Database) string {
	t.Helper()
	name := fmt.Sprint("test", databases.Add(1))
	_, db := open(t, d.PostgresURL("postgres"), sqlstore.Options{})
	run(t, db, "CREATE DATABASE "+name)
	return d.PostgresURL(name)
}

func run(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func harness(t testing.TB, dsn string) storetest.Harness {
	migrated(t, dsn)
	store := func(t testing.TB) lease.Store {
		s, _ := open(t, dsn, sqlstore.Options{})
		return s
	}
	return storetest.Harness{Open: store, Again: func(t testing.TB, _ lease.Store) lease.Store { return store(t) }, Steps: 200}
}

func TestContract(t *testing.T) {
	d := servers.Postgres(t)
	storetest.Run(t, harness(t, d.PostgresURL("weir")))
}

func BenchmarkStore(b *testing.B) {
	d := servers.Postgres(b)
	storetest.Bench(b, harness(b, d.PostgresURL("weir")))
}

func TestProcessesThatAreKilledAndAServerThatRestartsHarmNothing(t *testing.T) {
	d := servers.Postgres(t)
	s, _ := migrated(t, d.PostgresURL("weir"))
	crowd.Run(t, s, d.PostgresURL("weir"), d.Restart, func() { d.Kill(); d.Start() })
}
