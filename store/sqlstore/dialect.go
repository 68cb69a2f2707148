package sqlstore

import (
	"context"
	"database/sql"

	"github.com/weir-go/weir/internal/sqltable"
)

// Dialect is the kind of database behind a *sql.DB.
type Dialect int

// These are the dialects. The zero Dialect is invalid.
const (
	// SQLite is a file that the processes of one machine share.
	SQLite Dialect = iota + 1
	// Postgres is PostgreSQL 11 or newer.
	Postgres
	// MySQL is MySQL 8.0 or newer, or MariaDB 10.3 or newer.
	MySQL
)

// String returns the dialect's name.
func (d Dialect) String() string {
	if t := dialects[d]; t != nil {
		return t.name
	}
	return "no dialect"
}

var dialects = map[Dialect]*dialect{SQLite: sqlite, Postgres: postgres, MySQL: mysql}

// dialect contains the differences between databases.
type dialect struct {
	name string
	// schema contains the statements that upgrade each version of the schema to the next one.
	// {prefix} is a placeholder for the prefix of all names.
	schema [][]string
	// server is set if the database is a server. Calls then go over a network, and transactions run
	// concurrently.
	server bool
	// quote quotes the name of a schema, which may be a reserved word. It is only set for servers.
	quote func(string) string
	// dollars is set if parameters are written $1, $2 and not ?.
	dollars bool
	// oneWriter is set if a writer locks the whole database. Writers of one process should then
	// queue.
	oneWriter bool
	// byOwner is inserted after the name of the leases table in a query by application and owner.
	// It makes the database use the index.
	byOwner string
	// prepare prepares the database for [Store.Migrate], outside any transaction. It is nil if no
	// preparation is needed.
	prepare func(ctx context.Context, c *sql.Conn) error
	// migrating is a statement that locks out other migrations of tables with the same name. The
	// name is its parameter. The lock ends with the transaction or with the statement migrated.
	// migrating is "" if the database locks by itself.
	migrating, migrated string
	// repeated reports whether an error means that an incomplete migration has already executed a
	// statement of the schema. It is nil if the database executes each step atomically.
	repeated func(error) bool
	// replacing returns the end of an INSERT of leases that updates these columns of an existing
	// row. It is only set for servers.
	replacing func(columns []string) string
	// quickBeat executes an ordinary heartbeat outside a transaction. It is nil if that is not
	// faster.
	quickBeat func(t *tx, q quickBeat) error
	// begin starts a transaction. If write is set, the rows that the transaction reads do not
	// change until it ends. On a server, the transaction's locks guarantee that. If write is not
	// set, the transaction sees the database as of one moment. On a server, calls that do not write
	// use no transaction.
	begin func(ctx context.Context, c *sql.Conn, write bool) error
	// busy reports whether an error means that the transaction collided with another one and should
	// be retried.
	busy func(error) bool
	// hopeless returns the cause and the solution of an error that a retry cannot fix, and "" for
	// other errors. fresh is set until the database has worked once.
	hopeless func(err error, fresh bool) string
}

// misunderstood reports whether an error means that the database does not accept the statement's
// syntax.
func misunderstood(err error) bool {
	return sqltable.Mentions(err, "syntax error", "error in your SQL syntax", "SQLSTATE 42601", "Error 1064")
}
