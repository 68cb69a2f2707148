package sqlstore

import (
	"context"
	"database/sql"

	"github.com/weir-go/weir/internal/sqltable"
)

// Dialect names the database behind the *sql.DB.
type Dialect int

// The dialects. The zero Dialect is none.
const (
	// SQLite is a file that processes of one machine share.
	SQLite Dialect = iota + 1
	// Postgres is PostgreSQL 11 or newer.
	Postgres
	// MySQL is MySQL 8.0 or newer, or MariaDB 10.3 or newer.
	MySQL
)

// String is the dialect's name.
func (d Dialect) String() string {
	if t := dialects[d]; t != nil {
		return t.name
	}
	return "no dialect"
}

var dialects = map[Dialect]*dialect{SQLite: sqlite, Postgres: postgres, MySQL: mysql}

// dialect is what databases do not have in common.
type dialect struct {
	name string
	// schema holds the statements that lead from each version of the schema to the next one.
	// {prefix} stands for the prefix of all names.
	schema [][]string
	// server says that the database is one: asked over a network, by transactions that run beside
	// each other.
	server bool
	// quote makes a name of a schema out of one that may be a reserved word. Of servers only.
	quote func(string) string
	// dollars says that parameters are written $1, $2 instead of ?.
	dollars bool
	// oneWriter says that writers lock the whole database, so that those of one process had better
	// queue up.
	oneWriter bool
	// byOwner follows the name of the leases table in a query by application and owner, so that the
	// index is used.
	byOwner string
	// prepare readies the database for [Store.Migrate], outside of any transaction; nil if there is
	// nothing to do.
	prepare func(ctx context.Context, c *sql.Conn) error
	// migrating makes others who migrate tables of the same name, which is its parameter, wait
	// until the transaction ends, or until migrated. "" for a database that does that by itself.
	migrating, migrated string
	// repeated says that a statement of the schema was carried out before, by somebody who did not
	// come to the end of the step; nil where a step takes effect as a whole or not at all.
	repeated func(error) bool
	// replacing ends an INSERT of leases, so that it sets these columns of a row that is there. Of
	// servers only.
	replacing func(columns []string) string
	// quickBeat carries out an ordinary beat outside of a transaction, nil if that gains nothing.
	quickBeat func(t *tx, q quickBeat) error
	// begin starts a transaction in which what was read stays true until it ends if write is set,
	// and which sees the database as of one moment if not. On a server the first is so because of
	// the locks that it takes, and nothing begins for reading.
	begin func(ctx context.Context, c *sql.Conn, write bool) error
	// busy reports whether an error says that the transaction collided with another, so that it
	// should be tried again.
	busy func(error) bool
	// hopeless says what is wrong and what to do about an error that no retry mends, "" for any
	// other. fresh is set as long as the database has not worked yet.
	hopeless func(err error, fresh bool) string
}

// misunderstood reports whether a database says that it does not know the language of a statement.
func misunderstood(err error) bool {
	return sqltable.Mentions(err, "syntax error", "error in your SQL syntax", "SQLSTATE 42601", "Error 1064")
}
