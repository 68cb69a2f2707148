package sqlsink

import (
	"strconv"

	"github.com/weir-go/weir/internal/sqltable"
)

// Dialect is the kind of database behind the *sql.DB.
type Dialect int

// The dialects. The zero Dialect is invalid.
const (
	// SQLite is SQLite 3.24 or newer.
	SQLite Dialect = iota + 1
	// Postgres is PostgreSQL 9.6 or newer.
	Postgres
	// MySQL is MySQL 8.0 or newer, or MariaDB 10.3 or newer.
	MySQL
)

// String returns the dialect's name.
func (d Dialect) String() string {
	if k := dialects[d]; k != nil {
		return k.name
	}
	return "no dialect"
}

// dialect contains the differences between databases. {table} stands for the table.
type dialect struct {
	name  string
	quote string // around names
	lower bool   // names without quotes are in lower case
	// schemas says that the table can be in another schema than that of the connection.
	schemas bool
	dollars bool // parameters are written $1, $2 instead of ?
	// oneWriter says that a transaction locks the whole database.
	oneWriter bool
	table     string
	// insert follows INSERT INTO {table} (…) VALUES (…) and leaves an existing row unchanged.
	insert string
	// begin is the first statement of a transaction, with the number of milliseconds that it may be
	// idle; "" for none.
	begin string
	// lock is executed before the row is read, if the database has no locking reads. locking is the
	// end of a locking read.
	lock, locking string
	now           string // the time by the database's clock
	before        string // the time some seconds ago; the parameter is their number
	// ago returns the parameter of before.
	ago func(seconds int64) any
	// endsByStatement says that the driver abandons a statement when its context ends, and waits
	// for the answer to Commit and Rollback for as long as the connection seems to be alive.
	endsByStatement bool
	// locked reports whether an error says that another transaction has locked the row.
	locked func(error) bool
}

var dialects = map[Dialect]*dialect{SQLite: sqlite, Postgres: postgres, MySQL: mysql}

var postgres = &dialect{
	name: "Postgres", quote: `"`, lower: true, schemas: true, dollars: true,
	table: `CREATE TABLE IF NOT EXISTS {table} (
  app TEXT COLLATE "C" NOT NULL,
  stream TEXT COLLATE "C" NOT NULL,
  shard TEXT COLLATE "C" NOT NULL,
  epoch BIGINT NOT NULL,     -- the highest epoch of an owner that has written here
  position TEXT NOT NULL,    -- the position after the last record whose effects are stored
  ended SMALLINT NOT NULL,   -- 1: the shard has no more records
  updated TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (app, stream, shard)
) WITH (fillfactor = 50)`, // room for the new version of a row on the same page
	insert:  " ON CONFLICT (app, stream, shard) DO NOTHING",
	begin:   "SET LOCAL idle_in_transaction_session_timeout = ",
	locking: " FOR UPDATE NOWAIT",
	now:     "now()",
	before:  "now() - ? * INTERVAL '1 second'",
	ago:     func(seconds int64) any { return seconds },
	locked:  func(err error) bool { return sqltable.SQLState(err) == "55P03" },
}

var mysql = &dialect{
	name: "MySQL", quote: "`", schemas: true, endsByStatement: true,
	// Names are bytes, because the collations that compare text by its bytes ignore trailing
	// spaces.
	table: `CREATE TABLE IF NOT EXISTS {table} (
  app VARBINARY(255) NOT NULL,
  stream VARBINARY(255) NOT NULL,
  shard VARBINARY(255) NOT NULL,
  epoch BIGINT NOT NULL,             -- the highest epoch of an owner that has written here
  position VARBINARY(160) NOT NULL,  -- the position after the last record whose effects are stored
  ended TINYINT NOT NULL,            -- 1: the shard has no more records
  updated DATETIME NOT NULL,         -- UTC
  PRIMARY KEY (app, stream, shard)
) ENGINE = InnoDB`,
	// IGNORE would also turn other errors into warnings.
	insert:  " ON DUPLICATE KEY UPDATE epoch = epoch",
	locking: " FOR UPDATE NOWAIT",
	now:     "UTC_TIMESTAMP()",
	before:  "UTC_TIMESTAMP() - INTERVAL ? SECOND",
	ago:     func(seconds int64) any { return seconds },
	locked: func(err error) bool {
		switch sqltable.MySQLCode(err) {
		case "3572", "1205", "1213": // codes of MySQL, of MariaDB, and of a deadlock
			return true
		}
		return false
	},
}

var sqlite = &dialect{
	name: "SQLite", quote: `"`, oneWriter: true,
	table: `CREATE TABLE IF NOT EXISTS {table} (
  app TEXT NOT NULL,
  stream TEXT NOT NULL,
  shard TEXT NOT NULL,
  epoch INTEGER NOT NULL,  -- the highest epoch of an owner that has written here
  position TEXT NOT NULL,  -- the position after the last record whose effects are stored
  ended INTEGER NOT NULL,  -- 1: the shard has no more records
  updated TEXT NOT NULL,   -- UTC
  PRIMARY KEY (app, stream, shard)
) WITHOUT ROWID`,
	insert: " ON CONFLICT (app, stream, shard) DO NOTHING",
	// A transaction that begins with a write has exclusive access to the file and reads the present
	// state, whether the driver uses BEGIN or BEGIN IMMEDIATE.
	lock:   "UPDATE {table} SET epoch = epoch WHERE app = ? AND stream = ? AND shard = ?",
	now:    "datetime('now')",
	before: "datetime('now', ?)",
	ago:    func(seconds int64) any { return "-" + strconv.FormatInt(seconds, 10) + " seconds" },
	// Each driver has its own error types, but all of them contain SQLite's English text.
	locked: func(err error) bool {
		return sqltable.Mentions(err, "database is locked", "database table is locked", "SQLITE_BUSY")
	},
}

// noTable reports whether an error says that the table is missing.
func noTable(err error) bool {
	return sqltable.SQLState(err) == "42P01" || sqltable.MySQLCode(err) == "1146" || sqltable.Mentions(err, "no such table")
}
