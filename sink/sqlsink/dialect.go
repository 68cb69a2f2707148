package sqlsink

import (
	"strconv"

	"github.com/weir-go/weir/internal/sqltable"
)

// Dialect is the kind of the database.
type Dialect int

// The dialects. The zero value is invalid.
const (
	// SQLite is SQLite 3.24 or newer.
	SQLite Dialect = iota + 1
	// Postgres is PostgreSQL 9.6 or newer.
	Postgres
	// MySQL is MySQL 8.0 or newer, or MariaDB 10.3 or newer.
	MySQL
)

// String returns the name of the dialect.
func (d Dialect) String() string {
	if k := dialects[d]; k != nil {
		return k.name
	}
	return "no dialect"
}

// dialect contains the differences between databases. In statements, {table} is replaced by the
// name of the table.
type dialect struct {
	name  string
	quote string // the quote around names
	lower bool   // names without quotes are in lower case
	// schemas means that the table can be in a schema other than that of the connection.
	schemas bool
	dollars bool // parameters are written $1, $2 instead of ?
	// oneWriter means that a transaction locks the whole database.
	oneWriter bool
	table     string
	// insert is the end of an INSERT statement. It makes the statement leave an existing row
	// unchanged.
	insert string
	// begin is the first statement of a transaction. Its parameter is the number of milliseconds
	// that the transaction may be idle. It is "" if there is no such statement.
	begin string
	// lock is a statement that runs before the row is read, for databases without locking reads.
	// locking is the end of a locking read.
	lock, locking string
	now           string // expression for the current time of the database
	before        string // expression for an earlier time; its parameter is the distance in seconds
	// ago returns the parameter for before.
	ago func(seconds int64) any
	// endsByStatement means that the driver abandons a statement when its context ends. For Commit
	// and Rollback, such a driver waits for the answer as long as the connection seems to be alive.
	endsByStatement bool
	// locked reports whether an error means that another transaction has locked the row.
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
  ended SMALLINT NOT NULL,   -- 1: the shard has no more records; 2: it has partitions
  updated TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (app, stream, shard)
) WITH (fillfactor = 50)`, // leaves room on the page for the new version of a row
	insert:  " ON CONFLICT (app, stream, shard) DO NOTHING",
	begin:   "SET LOCAL idle_in_transaction_session_timeout = ",
	locking: " FOR UPDATE NOWAIT",
	now:     "now()",
	before:  "now() - ? * INTERVAL '1 second'",
	ago:     func(seconds int64) any { return seconds },
	locked: func(err error) bool {
		code := sqltable.SQLState(err)
		return code == "55P03" || code == "40P01" // of a deadlock
	},
}

var mysql = &dialect{
	name: "MySQL", quote: "`", schemas: true, endsByStatement: true,
	// Names are bytes. The collations that compare text by its bytes would ignore trailing spaces.
	table: `CREATE TABLE IF NOT EXISTS {table} (
  app VARBINARY(255) NOT NULL,
  stream VARBINARY(255) NOT NULL,
  shard VARBINARY(255) NOT NULL,
  epoch BIGINT NOT NULL,             -- the highest epoch of an owner that has written here
  position VARBINARY(160) NOT NULL,  -- the position after the last record whose effects are stored
  ended TINYINT NOT NULL,            -- 1: the shard has no more records; 2: it has partitions
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
  ended INTEGER NOT NULL,  -- 1: the shard has no more records; 2: it has partitions
  updated TEXT NOT NULL,   -- UTC
  PRIMARY KEY (app, stream, shard)
) WITHOUT ROWID`,
	insert: " ON CONFLICT (app, stream, shard) DO NOTHING",
	// Begin the transaction with a write. It then has exclusive access to the file and reads the
	// current state. This works for drivers that use BEGIN and for those that use BEGIN IMMEDIATE.
	lock:   "UPDATE {table} SET epoch = epoch WHERE app = ? AND stream = ? AND shard = ?",
	now:    "datetime('now')",
	before: "datetime('now', ?)",
	ago:    func(seconds int64) any { return "-" + strconv.FormatInt(seconds, 10) + " seconds" },
	// Each driver has its own error types, but all of them contain SQLite's English text.
	locked: func(err error) bool {
		return sqltable.Mentions(err, "database is locked", "database table is locked", "SQLITE_BUSY")
	},
}

// noTable reports whether an error means that the table does not exist.
func noTable(err error) bool {
	return sqltable.SQLState(err) == "42P01" || sqltable.MySQLCode(err) == "1146" || sqltable.Mentions(err, "no such table")
}
