package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/weir-go/weir/internal/sqltable"
	"github.com/weir-go/weir/lease"
)

var sqlite = &dialect{
	name:      "SQLite",
	oneWriter: true,
	schema: [][]string{{
		`CREATE TABLE {prefix}applications (
  app TEXT NOT NULL PRIMARY KEY,
  leader TEXT NOT NULL,      -- a session, '' for none
  term INTEGER NOT NULL,
  revision INTEGER NOT NULL, -- moves when leases change hands
  token TEXT NOT NULL,       -- tells this row from one of the same name that was deleted
  paused TEXT NOT NULL       -- a JSON array of streams
) WITHOUT ROWID`,
		`CREATE TABLE {prefix}sessions (
  app TEXT NOT NULL,
  session TEXT NOT NULL,
  name TEXT NOT NULL,
  beat INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  leaving INTEGER NOT NULL,
  weight REAL NOT NULL,
  max_leases INTEGER NOT NULL,
  holds INTEGER NOT NULL,
  drain INTEGER NOT NULL,
  troubles TEXT NOT NULL,    -- a JSON array, '' for none
  PRIMARY KEY (app, session)
) WITHOUT ROWID`,
		`CREATE TABLE {prefix}leases (
  app TEXT NOT NULL,
  stream TEXT NOT NULL,
  shard TEXT NOT NULL,
  parents TEXT NOT NULL,     -- a JSON array of shard IDs
  range_start TEXT NOT NULL, -- decimal
  range_end TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  owner TEXT NOT NULL,       -- this and the next four are sessions, '' for none
  heir TEXT NOT NULL,        -- '~' stands for nobody
  revoked TEXT NOT NULL,
  last_owner TEXT NOT NULL,
  shunned TEXT NOT NULL,
  position TEXT NOT NULL,    -- oldest, latest, end, a time, a sequence number, or one with +N
  load_class INTEGER NOT NULL,
  born INTEGER NOT NULL,     -- Unix milliseconds, 0 for unknown
  PRIMARY KEY (app, stream, shard)
) WITHOUT ROWID`,
		`CREATE INDEX {prefix}leases_owner ON {prefix}leases (app, owner)`,
	}, {
		// The column contains a worker's heartbeat interval, failover time and handoff timeout, as
		// in 1s/5s/30s.
		`ALTER TABLE {prefix}sessions ADD COLUMN times TEXT NOT NULL DEFAULT ''`,
	}, {
		// The column contains the deaths of owners at one position, in the form of lease.Deaths.
		`ALTER TABLE {prefix}leases ADD COLUMN deaths TEXT NOT NULL DEFAULT ''`,
	}, {
		// The table contains past states of shards, as reported by their owners; see
		// lease.HistoryChunk.
		`CREATE TABLE {prefix}history (
  app TEXT NOT NULL,
  since INTEGER NOT NULL,    -- a minute
  session TEXT NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (app, since, session)
) WITHOUT ROWID`,
	}, {
		// The column contains the streams that a worker reads, in the form of lease.Streams, or ''
		// if the worker did not report them.
		`ALTER TABLE {prefix}sessions ADD COLUMN streams TEXT NOT NULL DEFAULT ''`,
	}, {
		// The columns contain the measured throughput in bytes per second, and the notes of paused
		// streams as a JSON object, NULL for none.
		`ALTER TABLE {prefix}leases ADD COLUMN rate INTEGER NOT NULL DEFAULT 0`,
		`ALTER TABLE {prefix}applications ADD COLUMN pause_notes TEXT`,
	}, {
		// The column contains the numbers of handled records, see lease.Lease.Numbers.
		`ALTER TABLE {prefix}leases ADD COLUMN numbers TEXT NOT NULL DEFAULT ''`,
	}},
	// Without this, SQLite would prefer the primary key and read all leases of the application.
	byOwner:  " INDEXED BY {prefix}leases_owner",
	prepare:  prepareSQLite,
	begin:    beginSQLite,
	busy:     busySQLite,
	hopeless: hopelessSQLite,
}

// prepareSQLite turns on write-ahead logging. The setting is stored in the file.
func prepareSQLite(ctx context.Context, c *sql.Conn) error {
	if _, err := c.ExecContext(ctx, "PRAGMA busy_timeout = 50"); err != nil {
		return err
	}
	var mode string
	if err := c.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return err
	}
	switch strings.ToLower(mode) {
	case "wal":
		return nil
	case "memory":
		return fmt.Errorf("%w: the database is in memory, where each connection has its own: name a file, or use memstore",
			lease.ErrSetup)
	default:
		return fmt.Errorf("%w: the file does not take write-ahead logging (its journal mode is %q): put it on a local disk",
			lease.ErrSetup, mode)
	}
}

// beginSQLite takes the write lock at once if write is set. A transaction that starts as a reader
// cannot become a writer after another process has written. busy_timeout and synchronous can be set
// only outside a transaction.
func beginSQLite(ctx context.Context, c *sql.Conn, write bool) error {
	if _, err := c.ExecContext(ctx, "PRAGMA busy_timeout = 50"); err != nil {
		return err
	}
	if !write {
		_, err := c.ExecContext(ctx, "BEGIN")
		return err
	}
	if _, err := c.ExecContext(ctx, "PRAGMA synchronous = FULL"); err != nil {
		return err
	}
	_, err := c.ExecContext(ctx, "BEGIN IMMEDIATE")
	return err
}

// Each driver has its own error types, but all errors contain SQLite's English text.

func busySQLite(err error) bool {
	return sqltable.Mentions(err, "database is locked", "database table is locked", "database schema is locked", "SQLITE_BUSY")
}

func hopelessSQLite(err error, fresh bool) string {
	switch {
	case sqltable.Mentions(err, "no such table", "no such column", "has no column named"):
		return "the tables are missing or not weir's: call Migrate once, or run the statements that Schema returns"
	case sqltable.Mentions(err, "readonly database", "read-only database"):
		return "the file or its directory may not be written: give this user the right to write both"
	case sqltable.Mentions(err, "file is not a database", "file is encrypted"):
		return "the file is not a SQLite database: name another one"
	case sqltable.Mentions(err, "disk image is malformed", "malformed database schema"):
		return "the file is damaged: put a backup in its place, or delete it and start the application from the beginning"
	case fresh && sqltable.Mentions(err, "unable to open database"):
		return "the file cannot be opened: its directory has to exist, and this user needs the right to read and write both"
	}
	return ""
}
