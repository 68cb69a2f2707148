package sqlstore

import (
	"context"
	"database/sql"

	"github.com/weir-go/weir/internal/sqltable"
)

// Dialect is the kind of database behind the *sql.DB.
type Dialect int

// The dialects. The zero Dialect is invalid.
const (
	// SQLite is a file that processes of one machine share.
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
	// schema holds the statements that lead from each version of the schema to the next one.
	// {prefix} stands for the prefix of all names.
	schema [][]string
	// server says that the database is a server: calls go over a network, and transactions run
	// concurrently.
	server bool
	// quote quotes the name of a schema, which may be a reserved word. Only for servers.
	quote func(string) string
	// dollars says that parameters are written $1, $2 instead of ?.
	dollars bool
	// oneWriter says that a writer locks the whole database, so that writers of one process should
	// queue.
	oneWriter bool
	// byOwner follows the name of the leases table in a query by application and owner, so that the
	// index is used.
	byOwner string
	// prepare prepares the database for [Store.Migrate], outside any transaction; nil if nothing is
	// needed.
	prepare func(ctx context.Context, c *sql.Conn) error
	// migrating makes other migrations of tables with the same name, which is its parameter, wait
	// until the transaction ends, or until migrated. It is "" if the database does that itself.
	migrating, migrated string
	// repeated reports whether an error says that a statement of the schema was carried out before,
	// by an incomplete migration. It is nil if the database carries out a step as a whole or not at
	// all.
	repeated func(error) bool
	// replacing returns the end of an INSERT of leases that updates these columns of an existing
	// row. Only for servers.
	replacing func(columns []string) string
	// quickBeat carries out an ordinary heartbeat outside a transaction; nil if that is not faster.
	quickBeat func(t *tx, q quickBeat) error
	// begin starts a transaction. If write is set, the rows that it reads do not change until it
	// ends; on a server its locks guarantee that. Otherwise it sees the database as of one moment.
	// Servers do not use read transactions.
	begin func(ctx context.Context, c *sql.Conn, write bool) error
	// busy reports whether an error says that the transaction collided with another and should be
	// retried.
	busy func(error) bool
	// hopeless returns what is wrong and what to do about an error that a retry cannot fix, and ""
	// for other errors. fresh is set until the database has worked once.
	hopeless func(err error, fresh bool) string
}

// misunderstood reports whether an error says that the database does not understand the statement's
// syntax.
func misunderstood(err error) bool {
	return sqltable.Mentions(err, "syntax error", "error in your SQL syntax", "SQLSTATE 42601", "Error 1064")
}
