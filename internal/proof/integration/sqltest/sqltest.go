// Package sqltest contains the tests of sqlstore for all databases. The guarantees are the same for
// all, and only details of SQL differ. [Server] contains these details as data. Tests for a single
// database are in the package of that database.
package sqltest

import (
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/weir-go/weir/internal/proof/integration/crowd"
	"github.com/weir-go/weir/internal/proof/integration/older"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/sqlstore"
	"github.com/weir-go/weir/store/storetest"
)

// Kind is a kind of database.
type Kind struct {
	Driver  string // name of the driver in database/sql
	Dialect sqlstore.Dialect
}

// Place opens a store. It receives only the data source name, for use with [crowd.Main].
func (k Kind) Place(dsn string) (lease.Store, error) {
	db, err := sql.Open(k.Driver, dsn)
	if err != nil {
		return nil, err
	}
	return sqlstore.New(db, sqlstore.Options{Dialect: k.Dialect})
}

// Open opens a store like a separate process, until the test ends.
func (k Kind) Open(t testing.TB, dsn string, o sqlstore.Options) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	db, err := sql.Open(k.Driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(10)
	o.Dialect = k.Dialect
	s, err := sqlstore.New(db, o)
	if err != nil {
		t.Fatal(err)
	}
	return s, db
}

// Migrated returns a store with its tables.
func (k Kind) Migrated(t testing.TB, dsn string) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	s, db := k.Open(t, dsn, sqlstore.Options{})
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, db
}

// Exec executes a statement.
func Exec(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// Text returns the result of a query that has a single value.
func Text(t testing.TB, db *sql.DB, query string) string {
	t.Helper()
	var s string
	if err := db.QueryRowContext(t.Context(), query).Scan(&s); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return s
}

// Server is a database server, with the details of its SQL.
type Server struct {
	Kind
	Start func(testing.TB) *servers.Database
	DSN   func(d *servers.Database, database string) string
	Home  string // the database from which others are created
	// Other is a statement that creates a schema named order, which is a reserved word.
	Other string
	// Tables is a query for the description of all tables, as one text.
	Tables string
	// Setup returns additional invalid databases. It may be nil.
	Setup func(Server, *servers.Database) []SetupCase

	Hold     []string      // statements that block all writes to the tables, in a transaction
	Waiting  string        // query for the number of transactions that wait for a row
	Look     time.Duration // interval at which the server refreshes Waiting
	Deadlock string        // part of the error of the transaction that a deadlock aborted

	Idle, Saving []string // statements of a heartbeat without changes, and with checkpoints
	Assigning    int      // statements of an Apply, in addition to two for each 200 leases

	Page   string   // name of the server in docs/security.md
	Admin  []string // statements that enable users, if they are disabled
	Closed []string // statements that revoke default permissions in a database

	// Impatient is added to a data source name to make the server end idle transactions. It is ""
	// if the store itself makes the server do so.
	Impatient string
}

// Weir returns the data source name of a server's first database.
func (s Server) Weir(d *servers.Database) string { return s.DSN(d, "weir") }

var databases atomic.Int32

// Fresh creates another database and returns its data source name.
func (s Server) Fresh(t testing.TB, d *servers.Database) string {
	t.Helper()
	name := fmt.Sprint("test", databases.Add(1))
	_, db := s.Open(t, s.DSN(d, s.Home), sqlstore.Options{})
	Exec(t, db, "CREATE DATABASE "+name)
	return s.DSN(d, name)
}

// Run runs the tests that are the same for every kind of server. Most tests share one server, and
// create their own databases on it.
func Run(t *testing.T, s Server) {
	d := s.Start(t)
	for _, c := range []struct {
		name string
		test func(*testing.T, Server, *servers.Database)
	}{
		{"contract", contract},
		{"setup errors say what to do", setupErrors},
		{"migrate may run any time and schema is what it makes", migrations},
		{"many programs set it up at once", setUpAtOnce},
		{"tables of an older version are brought up to date", upgrades},
		{"the documented grants are enough and none is one too many", grants},
		{"prefixes and schemas keep tables apart", prefixes},
		{"bad rows are named", badRows},
		{"a beat is a few statements however many leases and workers there are", statementsOfABeat},
		{"calls end with their context", contexts},
		{"deadlocks are tried again", deadlocks},
		{"a beat whose lease is taken in its midst does not hold it", takenInItsMidst},
		{"a process that vanishes in a transaction holds nobody up", vanishes},
		{"connections that died without a word cost one call", deadConns},
		{"lost answers harm nothing", lostAnswers},
		{"processes that are killed and a server that restarts harm nothing", kills},
		{"processes of two versions share a database", versions},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, s, d) })
	}
}

func contract(t *testing.T, s Server, d *servers.Database) { storetest.Run(t, s.harness(t, d)) }

// Bench measures a server for a comparison with other servers.
func Bench(b *testing.B, s Server) { storetest.Bench(b, s.harness(b, s.Start(b))) }

func (s Server) harness(t testing.TB, d *servers.Database) storetest.Harness {
	dsn := s.Fresh(t, d)
	s.Migrated(t, dsn)
	store := func(t testing.TB) lease.Store {
		opened, _ := s.Open(t, dsn, sqlstore.Options{})
		return opened
	}
	return storetest.Harness{Open: store, Again: func(t testing.TB, _ lease.Store) lease.Store { return store(t) }, Steps: 200}
}

func kills(t *testing.T, s Server, _ *servers.Database) {
	d := s.Start(t)
	store, _ := s.Migrated(t, s.Weir(d))
	crowd.Run(t, store, s.Weir(d), d.Restart, func() { d.Kill(); d.Start() })
}

func versions(t *testing.T, s Server, d *servers.Database) {
	dsn := s.Fresh(t, d)
	url := dsn
	if s.Dialect == sqlstore.MySQL {
		config, err := mysql.ParseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		url = "mysql://" + config.User + "@" + config.Addr + "/" + config.DBName
	}
	before := older.Unpack(t)
	before.CreateStore(t, url)
	store, _ := s.Migrated(t, dsn)
	crowd.Mixed(t, store, dsn, before.Tests(t))
}

func lostAnswers(t *testing.T, s Server, d *servers.Database) {
	dsn := s.Fresh(t, d)
	clean, _ := s.Migrated(t, dsn)
	p := servers.NewProxy(t, d.Addr)
	faulty, _ := s.Open(t, strings.Replace(dsn, d.Addr, p.Addr, 1), sqlstore.Options{})
	lose, lost := crowd.Losing(p)
	crowd.LostAnswers(t, clean, faulty, lose, lost)
}
