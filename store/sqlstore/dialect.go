package sqlstore

import (
	"context"
	"database/sql"
)

// Dialect names the database behind the *sql.DB.
type Dialect int

// The dialects. The zero Dialect is none.
const (
	// SQLite is a file that processes of one machine share.
	SQLite Dialect = iota + 1
)

// String is the dialect's name.
func (d Dialect) String() string {
	if t := dialects[d]; t != nil {
		return t.name
	}
	return "no dialect"
}

var dialects = map[Dialect]*dialect{SQLite: sqlite}

// dialect is what databases do not have in common.
type dialect struct {
	name string
	// schema holds the statements that lead from each version of the schema to the next one. {prefix} stands for the
	// prefix of all names.
	schema [][]string
	// oneWriter says that writers lock the whole database, so that those of one process had better queue up.
	oneWriter bool
	// byOwner follows the name of the leases table in a query by application and owner, so that the index is used.
	byOwner string
	// prepare readies the database for [Store.Migrate], outside of any transaction.
	prepare func(ctx context.Context, c *sql.Conn) error
	// begin starts a transaction in which what was read stays true until it ends if write is set, and which sees the
	// database as of one moment if not.
	begin func(ctx context.Context, c *sql.Conn, write bool) error
	// busy reports whether an error says that the transaction collided with another, so that it should be tried again.
	busy func(error) bool
	// hopeless says what is wrong and what to do about an error that no retry mends, "" for any other. fresh is set as
	// long as the database has not worked yet.
	hopeless func(err error, fresh bool) string
}
