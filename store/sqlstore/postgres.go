package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/weir-go/weir/internal/sqltable"
)

var postgres = &dialect{
	name:    "Postgres",
	server:  true,
	dollars: true,
	quote:   func(name string) string { return `"` + strings.ToLower(name) + `"` },
	schema: [][]string{{
		// Text is compared by its bytes. Tables whose rows change with each heartbeat have free
		// space in their pages (fillfactor), so that updates need not change an index.
		`CREATE TABLE {applications} (
  app TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  leader TEXT COLLATE "C" NOT NULL, -- a session, '' for none
  term BIGINT NOT NULL,
  revision BIGINT NOT NULL,         -- moves when leases change hands
  token TEXT NOT NULL,              -- tells this row from one of the same name that was deleted
  paused TEXT NOT NULL              -- a JSON array of streams
)`,
		`CREATE TABLE {sessions} (
  app TEXT COLLATE "C" NOT NULL,
  session TEXT COLLATE "C" NOT NULL,
  name TEXT NOT NULL,
  beat BIGINT NOT NULL,
  ended SMALLINT NOT NULL,
  leaving SMALLINT NOT NULL,
  weight DOUBLE PRECISION NOT NULL,
  max_leases BIGINT NOT NULL,
  holds BIGINT NOT NULL,
  drain SMALLINT NOT NULL,
  troubles TEXT NOT NULL,           -- a JSON array, '' for none
  PRIMARY KEY (app, session)
) WITH (fillfactor = 50)`,
		`CREATE TABLE {leases} (
  app TEXT COLLATE "C" NOT NULL,
  stream TEXT COLLATE "C" NOT NULL,
  shard TEXT COLLATE "C" NOT NULL,
  parents TEXT NOT NULL,            -- a JSON array of shard IDs
  range_start TEXT NOT NULL,        -- decimal
  range_end TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  owner TEXT COLLATE "C" NOT NULL,  -- this and the next four are sessions, '' for none
  heir TEXT COLLATE "C" NOT NULL,   -- '~' stands for nobody
  revoked TEXT COLLATE "C" NOT NULL,
  last_owner TEXT COLLATE "C" NOT NULL,
  shunned TEXT COLLATE "C" NOT NULL,
  position TEXT NOT NULL,           -- oldest, latest, end, a time, a sequence number, or one with +N
  load_class SMALLINT NOT NULL,
  born BIGINT NOT NULL,             -- Unix milliseconds, 0 for unknown
  place TEXT COLLATE "C" NOT NULL,  -- the position, for comparing
  PRIMARY KEY (app, stream, shard)
) WITH (fillfactor = 50)`,
		`CREATE INDEX {prefix}leases_owner ON {leases} (app, owner)`,
	}, {
		// The column contains a worker's heartbeat interval, failover time and handoff timeout, as
		// in 1s/5s/30s.
		`ALTER TABLE {sessions} ADD COLUMN IF NOT EXISTS times TEXT NOT NULL DEFAULT ''`,
	}, {
		// The column contains the deaths of owners at one position, in the form of lease.Deaths.
		`ALTER TABLE {leases} ADD COLUMN IF NOT EXISTS deaths TEXT NOT NULL DEFAULT ''`,
	}, {
		// The table contains past states of shards, as reported by their owners; see
		// lease.HistoryChunk.
		`CREATE TABLE IF NOT EXISTS {history} (
  app TEXT COLLATE "C" NOT NULL,
  since BIGINT NOT NULL,            -- a minute
  session TEXT COLLATE "C" NOT NULL,
  data BYTEA NOT NULL,
  PRIMARY KEY (app, since, session)
)`,
	}, {
		// The column contains the streams that a worker reads, in the form of lease.Streams, or ''
		// if the worker did not report them.
		`ALTER TABLE {sessions} ADD COLUMN IF NOT EXISTS streams TEXT NOT NULL DEFAULT ''`,
	}, {
		// The columns contain the measured throughput in bytes per second, and the notes of paused
		// streams as a JSON object, NULL for none.
		`ALTER TABLE {leases} ADD COLUMN IF NOT EXISTS rate BIGINT NOT NULL DEFAULT 0`,
		`ALTER TABLE {applications} ADD COLUMN IF NOT EXISTS pause_notes TEXT`,
	}, {
		// The column contains the numbers of handled records, see lease.Lease.Numbers.
		`ALTER TABLE {leases} ADD COLUMN IF NOT EXISTS numbers TEXT NOT NULL DEFAULT ''`,
	}},
	migrating: "SELECT pg_advisory_xact_lock(hashtext(?))",
	replacing: func(columns []string) string {
		sets := make([]string, len(columns))
		for i, c := range columns {
			sets[i] = c + " = EXCLUDED." + c
		}
		return " ON CONFLICT (app, stream, shard) DO UPDATE SET " + strings.Join(sets, ", ")
	},
	begin: func(ctx context.Context, c *sql.Conn, _ bool) error {
		// This takes one round trip. The timeout is for a process that disappears silently during a
		// transaction because its machine or its network failed. Without the timeout, the rows that
		// the process has locked would stay locked until TCP closes the connection. The
		// application's row is one of them. TCP takes two hours by default.
		_, err := c.ExecContext(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = 5000")
		return err
	},
	quickBeat: quickBeatPostgres,
	busy: func(err error) bool {
		switch sqltable.SQLState(err) {
		case "40001", "40P01", "55P03", "23505":
			// The codes mean a serialization failure, a deadlock, an unavailable lock, and a row
			// that another transaction created first.
			return true
		}
		return false
	},
	hopeless: hopelessPostgres,
}

func hopelessPostgres(err error, fresh bool) string {
	switch state := sqltable.SQLState(err); {
	case state == "42P01" || state == "42703":
		return "the tables are missing or not weir's: call Migrate once, or run the statements that Schema returns"
	case state == "42P07":
		return "the database has tables of these names that weir did not make: choose another Options.Prefix"
	case state == "3F000":
		return "the database has no schema with this name: create it, or choose another Options.Schema; or the user may not use it: grant it USAGE on the schema"
	case state == "42501":
		return "the user may not do this: grant it SELECT, INSERT, UPDATE and DELETE on the tables, and CREATE on the schema to the user that migrates"
	case fresh && (state == "28P01" || state == "28000"):
		return "the server does not take the user and password"
	case fresh && state == "3D000":
		return "the server has no database with this name: create it"
	}
	return ""
}

// An ordinary heartbeat is a single statement. It reads the database as of its start, but checks
// the rows that it changes in their current state. An ended session is not found, and a lease with
// a new owner accepts no position. In the latter case, the orders of the statement are out of date:
// they show that the lease is still held and its position is saved. errCollided then makes the
// store repeat the heartbeat.
var (
	countPostgres = `WITH me AS (
  UPDATE {sessions} SET beat = beat + 1, name = $3, leaving = $4, weight = $5, max_leases = $6, holds = $7, troubles = $8, streams = $9
  WHERE app = $1 AND session = $2 AND ended = 0 RETURNING beat
)`
	advancePostgres = `, moved AS (
  UPDATE {leases} l SET place = greatest(l.place, v.place), load_class = CASE WHEN v.load > 0 THEN v.load ELSE l.load_class END,
    rate = CASE WHEN v.load > 0 THEN v.rate ELSE l.rate END,
    position = CASE WHEN l.place < v.place THEN v.position ELSE l.position END
  FROM ` + stepsPostgres + ` AND EXISTS (SELECT 1 FROM me) RETURNING 1
)`
	// stepsPostgres selects the steps that take effect.
	stepsPostgres = `json_to_recordset(CAST($10 AS json)) AS v (stream text COLLATE "C", shard text COLLATE "C", epoch bigint, position text,
    place text COLLATE "C", load smallint, rate bigint)
  WHERE l.app = $1 AND l.stream = v.stream AND l.shard = v.shard AND l.owner = $2 AND l.epoch = v.epoch
    AND (l.place < v.place OR v.load > 0 AND (v.load <> l.load_class OR v.rate <> l.rate))`
	ordersPostgres = ` FROM me
LEFT JOIN {applications} a ON a.app = $1 LEFT JOIN {sessions} s ON s.app = $1 AND s.session = a.leader
LEFT JOIN {leases} l ON l.app = $1 AND l.owner = $2`
	othersPostgres = ` FROM {sessions} o WHERE o.app = $1 AND o.session <> $2 AND o.ended = 0`
)

func quickBeatPostgres(t *tx, q quickBeat) error {
	r := q.report
	args := []any{t.app, r.Session, r.Name, flag(r.Leaving), r.Weight, int64(r.MaxLeases), int64(r.Holds), q.troubles, string(r.Streams)}
	columns := ` SELECT me.beat, a.leader, a.term, s.beat, s.ended, ` + heldColumns
	others := func(more string) string {
		if !r.Others {
			return ""
		}
		return " UNION ALL SELECT " + othersColumns + more + othersPostgres
	}
	if len(q.steps) == 0 {
		return t.query(countPostgres+columns+ordersPostgres+others(""), ordersCount, q.orders, args...)
	}
	text, err := q.json()
	if err != nil {
		return err
	}
	moved := 0
	const count = ", (SELECT count(*) FROM moved)"
	err = t.query(countPostgres+advancePostgres+columns+count+ordersPostgres+others(count), ordersCount+1, func(values []any) error {
		d := decoder{row: values[ordersCount:]}
		moved = int(d.count("moved"))
		return errors.Join(d.err, q.orders(values[:ordersCount]))
	}, append(args, text)...)
	if err == nil && moved != q.effective() {
		return errCollided
	}
	return err
}
