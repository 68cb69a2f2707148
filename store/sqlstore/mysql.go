package sqlstore

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/weir-go/weir/internal/sqltable"
)

var mysql = &dialect{
	name:   "MySQL",
	server: true,
	quote:  func(name string) string { return "`" + name + "`" },
	// Names are bytes, because the collations that compare text by its bytes ignore trailing
	// spaces. In MySQL, statements that create tables end a transaction, so they must be
	// repeatable.
	schema: [][]string{{
		`CREATE TABLE IF NOT EXISTS {applications} (
  app VARBINARY(255) NOT NULL PRIMARY KEY,
  leader VARBINARY(100) NOT NULL, -- a session, '' for none
  term BIGINT NOT NULL,
  revision BIGINT NOT NULL,       -- moves when leases change hands
  token VARBINARY(40) NOT NULL,   -- tells this row from one of the same name that was deleted
  paused MEDIUMBLOB NOT NULL      -- a JSON array of streams
) ENGINE = InnoDB`,
		`CREATE TABLE IF NOT EXISTS {sessions} (
  app VARBINARY(255) NOT NULL,
  session VARBINARY(100) NOT NULL,
  name VARBINARY(200) NOT NULL,
  beat BIGINT NOT NULL,
  ended TINYINT NOT NULL,
  leaving TINYINT NOT NULL,
  weight DOUBLE NOT NULL,
  max_leases BIGINT NOT NULL,
  holds BIGINT NOT NULL,
  drain TINYINT NOT NULL,
  troubles BLOB NOT NULL,         -- a JSON array, '' for none
  PRIMARY KEY (app, session)
) ENGINE = InnoDB`,
		`CREATE TABLE IF NOT EXISTS {leases} (
  app VARBINARY(255) NOT NULL,
  stream VARBINARY(255) NOT NULL,
  shard VARBINARY(255) NOT NULL,
  parents BLOB NOT NULL,          -- a JSON array of shard IDs
  range_start VARBINARY(40) NOT NULL, -- decimal
  range_end VARBINARY(40) NOT NULL,
  epoch BIGINT NOT NULL,
  owner VARBINARY(100) NOT NULL,  -- this and the next four are sessions, '' for none
  heir VARBINARY(100) NOT NULL,   -- '~' stands for nobody
  revoked VARBINARY(100) NOT NULL,
  last_owner VARBINARY(100) NOT NULL,
  shunned VARBINARY(100) NOT NULL,
  position VARBINARY(160) NOT NULL, -- oldest, latest, end, a time, a sequence number, or one with +N
  load_class TINYINT NOT NULL,
  born BIGINT NOT NULL,           -- Unix milliseconds, 0 for unknown
  place VARBINARY(160) NOT NULL,  -- the position, for comparing
  PRIMARY KEY (app, stream, shard),
  KEY {prefix}leases_owner (app, owner)
) ENGINE = InnoDB`,
	}, {
		// The column contains a worker's heartbeat interval, failover time and handoff timeout, as
		// in 1s/5s/30s.
		`ALTER TABLE {sessions} ADD COLUMN times VARBINARY(60) NOT NULL DEFAULT ''`,
	}, {
		// The column contains the deaths of owners at one position, in the form of lease.Deaths.
		`ALTER TABLE {leases} ADD COLUMN deaths VARBINARY(400) NOT NULL DEFAULT ''`,
	}, {
		// The table contains past states of shards, as reported by their owners; see
		// lease.HistoryChunk.
		`CREATE TABLE IF NOT EXISTS {history} (
  app VARBINARY(255) NOT NULL,
  since BIGINT NOT NULL,          -- a minute
  session VARBINARY(100) NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (app, since, session)
) ENGINE = InnoDB`,
	}, {
		// The column contains the streams that a worker reads, in the form of lease.Streams, or ''
		// if the worker did not report them.
		`ALTER TABLE {sessions} ADD COLUMN streams VARBINARY(16384) NOT NULL DEFAULT ''`,
	}, {
		// The columns contain the measured throughput in bytes per second, and the notes of paused
		// streams as a JSON object, NULL for none.
		`ALTER TABLE {leases} ADD COLUMN rate BIGINT NOT NULL DEFAULT 0`,
		`ALTER TABLE {applications} ADD COLUMN pause_notes MEDIUMBLOB`,
	}, {
		// The column contains the numbers of handled records, see lease.Lease.Numbers.
		`ALTER TABLE {leases} ADD COLUMN numbers VARBINARY(2000) NOT NULL DEFAULT ''`,
	}},
	migrating: "SELECT GET_LOCK(LEFT(SHA2(?, 256), 40), 20)",
	migrated:  "SELECT RELEASE_LOCK(LEFT(SHA2(?, 256), 40))",
	replacing: func(columns []string) string {
		sets := make([]string, len(columns))
		for i, c := range columns {
			sets[i] = c + " = VALUES(" + c + ")"
		}
		return " ON DUPLICATE KEY UPDATE " + strings.Join(sets, ", ")
	},
	begin: func(ctx context.Context, c *sql.Conn, _ bool) error {
		// This applies to the next transaction only.
		if _, err := c.ExecContext(ctx, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"); err != nil {
			return err
		}
		_, err := c.ExecContext(ctx, "START TRANSACTION")
		return err
	},
	repeated:  func(err error) bool { return sqltable.MySQLCode(err) == "1060" }, // the column exists
	quickBeat: quickBeatMySQL,
	busy: func(err error) bool {
		switch sqltable.MySQLCode(err) {
		case "1205", "1213", "1020", "1062":
			// The codes mean a lock timeout, a deadlock, a changed row, and a row that another
			// transaction created first.
			return true
		}
		return false
	},
	hopeless: hopelessMySQL,
}

func hopelessMySQL(err error, fresh bool) string {
	switch code := sqltable.MySQLCode(err); {
	case code == "1146" || code == "1054" || code == "1136":
		return "the tables are missing or not weir's: call Migrate once, or run the statements that Schema returns; " +
			"where others have tables of these names, choose another Options.Prefix"
	case code == "1049":
		return "the server has no database with this name: create it, or choose another Options.Schema"
	case code == "1046":
		return "no database is chosen: name it in the data source name, or in Options.Schema"
	case code == "1142" || code == "1044" || code == "1227":
		return "the user may not do this: grant it SELECT, INSERT, UPDATE and DELETE on the tables, and CREATE, INDEX and ALTER to the user that migrates"
	case fresh && code == "1045":
		return "the server does not take the user and password"
	case code == "1665":
		return "the server logs statements, which does not go with READ COMMITTED: set binlog_format to ROW or MIXED"
	}
	return ""
}

// An ordinary heartbeat is two statements, one more for checkpoints with their loads, and one more
// for loads without a new checkpoint. A common transaction is not needed. The first statement
// checks that the session is alive and increases its count. A leader that saw the earlier count can
// then no longer end the session. Each checkpoint is conditional on owner, epoch and position. The
// last statement reads the resulting state.
var (
	countMySQL = `UPDATE {sessions} SET beat = beat + 1, name = ?, leaving = ?, weight = ?, max_leases = ?, holds = ?, troubles = ?, streams = ?
WHERE app = ? AND session = ? AND ended = 0`
	ordersMySQL = `SELECT me.beat, a.leader, a.term, s.beat, s.ended, ` + heldColumns + ` FROM {sessions} me
LEFT JOIN {applications} a ON a.app = me.app LEFT JOIN {sessions} s ON s.app = me.app AND s.session = a.leader
LEFT JOIN {leases} l ON l.app = me.app AND l.owner = me.session
WHERE me.app = ? AND me.session = ? AND me.ended = 0`
)

func quickBeatMySQL(t *tx, q quickBeat) error {
	r := q.report
	n, err := t.exec(countMySQL, r.Name, flag(r.Leaving), r.Weight, int64(r.MaxLeases), int64(r.Holds), q.troubles, string(r.Streams), t.app, r.Session)
	if err != nil || n == 0 {
		return err // the session is over, so there are no orders
	}
	// A load is usually reported together with a position, and one statement stores both. The
	// second statement is for loads without a position, and for positions that do not advance.
	placed := slices.DeleteFunc(slices.Clone(q.steps), func(s step) bool { return s.Place == "" })
	advanced, err := t.advanceMySQL(q, placed, "l.position = v.position, l.place = v.place, "+loadMySQL, "l.place < v.place")
	if err != nil {
		return err
	}
	loads := slices.DeleteFunc(slices.Clone(q.steps), func(s step) bool { return s.Load == 0 || s.Place != "" && advanced == len(placed) })
	if _, err = t.advanceMySQL(q, loads, loadMySQL, "(l.load_class <> v.load_class OR l.rate <> v.rate)"); err != nil {
		return err
	}
	if r.Others {
		return t.query(ordersMySQL+" UNION ALL SELECT "+othersColumns+fromOthers, ordersCount, q.orders, t.app, r.Session, t.app, r.Session)
	}
	return t.query(ordersMySQL, ordersCount, q.orders, t.app, r.Session)
}

// loadMySQL sets the load and the rate of a lease, if a step has a load.
const loadMySQL = "l.load_class = IF(v.load_class > 0, v.load_class, l.load_class), l.rate = IF(v.load_class > 0, v.rate, l.rate)"

// advanceMySQL updates the columns in set for each step whose condition is true. It returns the
// number of rows that it changed.
func (t *tx) advanceMySQL(q quickBeat, steps []step, set, condition string) (changed int, err error) {
	const first = "SELECT CAST(? AS BINARY) AS stream, CAST(? AS BINARY) AS shard, CAST(? AS SIGNED) AS epoch, ? AS position, CAST(? AS BINARY) AS place, " +
		"CAST(? AS SIGNED) AS load_class, CAST(? AS SIGNED) AS rate"
	const next = " UNION ALL SELECT CAST(? AS BINARY), CAST(? AS BINARY), CAST(? AS SIGNED), ?, CAST(? AS BINARY), CAST(? AS SIGNED), CAST(? AS SIGNED)"
	for some := range slices.Chunk(steps, rowsAtOnce) {
		var args []any
		for _, s := range some {
			args = append(args, s.Stream, s.Shard, s.Epoch, s.Position, s.Place, s.Load, s.Rate)
		}
		statement := "UPDATE (" + first + strings.Repeat(next, len(some)-1) + ") v STRAIGHT_JOIN {leases} l ON l.stream = v.stream AND l.shard = v.shard SET " + set +
			" WHERE l.app = ? AND l.owner = ? AND l.epoch = v.epoch AND " + condition
		n, err := t.exec(statement, append(args, t.app, q.report.Session)...)
		if err != nil {
			return changed, err
		}
		changed += int(n)
	}
	return changed, nil
}
