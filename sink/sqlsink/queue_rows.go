package sqlsink

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-go/weir/internal/sqltable"
	"github.com/weir-go/weir/queue"
)

// recordKey is the key of a record in the table, besides the application.
type recordKey struct{ queue, record string }

// errStored is the error of an insertion that finds stored keys.
var errStored = errors.New("sqlsink: another transaction has stored the key of a record")

const (
	mostRecordKey = 128 // bytes; the service's record IDs have at most 64
	// mostRows limits the rows of a statement. Older versions of SQLite allow 999 parameters.
	mostRows = 200
)

// keyOf returns the key of a record.
func (q *Queue) keyOf(r *queue.Record) recordKey {
	return recordKey{cmp.Or(q.o.Scope, r.Queue), r.Key()}
}

// keysOf returns the keys of records, each once. They are sorted, so that all transactions lock
// them in the same order.
func (q *Queue) keysOf(records []queue.Record) ([]recordKey, error) {
	keys := make([]recordKey, 0, len(records))
	for i := range records {
		k := q.keyOf(&records[i])
		switch {
		case k.queue == "":
			return nil, fmt.Errorf("sqlsink: the record %s names no queue: set Record.Queue, or QueueOptions.Scope", k.record)
		case records[i].ID == "":
			return nil, errors.New("sqlsink: a record has no ID")
		case len(k.queue) > maxName, len(k.record) > mostRecordKey:
			return nil, fmt.Errorf("sqlsink: the key of a record is too long: queue %.300q, record %.200q", k.queue, k.record)
		}
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b recordKey) int {
		return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.record, b.record))
	})
	return slices.Compact(keys), nil
}

// insert begins a transaction and stores the keys in it. If known is true, it first reads which
// keys are stored already, and returns these. If known is false, it returns errStored if a key is
// stored already.
func (q *Queue) insert(ctx context.Context, keys []recordKey, known bool) (tx *sql.Tx, stored map[recordKey]bool, err error) {
	tx, err = q.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("sqlsink: beginning a transaction: %w", err)
	}
	if stored, err = q.fill(ctx, tx, keys, known); err != nil {
		_ = tx.Rollback() // the other error matters more
		return nil, nil, err
	}
	return tx, stored, nil
}

// fill stores the keys in a new transaction; see insert.
func (q *Queue) fill(ctx context.Context, tx *sql.Tx, keys []recordKey, known bool) (stored map[recordKey]bool, err error) {
	var first []string
	if q.dialect.begin != "" {
		first = append(first, q.dialect.begin+fmt.Sprint(q.o.MaxIdle.Milliseconds()))
	}
	if q.queries.lockTimeout != "" {
		first = append(first, q.queries.lockTimeout+fmt.Sprint(q.o.LockTimeout.Milliseconds()))
	}
	if known && q.queries.write != "" {
		first = append(first, q.named(q.queries.write))
	}
	for _, statement := range first {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return nil, fmt.Errorf("sqlsink: beginning a transaction: %w", err)
		}
	}
	if known {
		if stored, err = q.stored(ctx, tx, keys); err != nil {
			return nil, err
		}
		keys = slices.DeleteFunc(slices.Clone(keys), func(k recordKey) bool { return stored[k] })
	}
	for some := range slices.Chunk(keys, mostRows) {
		args := make([]any, 0, 3*len(some))
		for _, k := range some {
			args = append(args, q.o.App, k.queue, k.record)
		}
		res, err := tx.ExecContext(ctx, q.named(insertKeys+rowsOf("(?, ?, ?, "+q.dialect.now+")", len(some))+q.queries.insert), args...)
		n := int64(len(some))
		if err == nil && q.queries.insert != "" {
			n, err = res.RowsAffected()
		}
		switch {
		case err != nil && q.queries.duplicate(err), err == nil && n < int64(len(some)):
			return nil, errStored
		case noTable(err):
			return nil, fmt.Errorf("sqlsink: there is no table %s: call Migrate once, or run the statements that Schema returns (%w)", q.name, err)
		case err != nil:
			return nil, fmt.Errorf("sqlsink: storing the keys of records: %w", err)
		}
	}
	return stored, nil
}

// stored returns which keys are in the table.
func (q *Queue) stored(ctx context.Context, tx *sql.Tx, keys []recordKey) (map[recordKey]bool, error) {
	found := map[recordKey]bool{}
	for len(keys) > 0 {
		n := 0
		args := []any{q.o.App, keys[0].queue}
		for n < len(keys) && n < mostRows && keys[n].queue == keys[0].queue {
			args = append(args, keys[n].record)
			n++
		}
		of := keys[0].queue
		keys = keys[n:]
		err := func() error {
			rows, err := tx.QueryContext(ctx, q.named(selectKeys+rowsOf("?", n)+")"), args...)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var record string
				if err := rows.Scan(&record); err != nil {
					return err
				}
				found[recordKey{of, record}] = true
			}
			return rows.Err()
		}()
		if err != nil {
			return nil, fmt.Errorf("sqlsink: reading the keys of records: %w", err)
		}
	}
	return found, nil
}

const (
	insertKeys = "INSERT INTO {table} (app, queue, record, handled) VALUES "
	selectKeys = "SELECT record FROM {table} WHERE app = ? AND queue = ? AND record IN ("
)

// rowsOf returns a list of n rows.
func rowsOf(row string, n int) string {
	return strings.TrimSuffix(strings.Repeat(row+", ", n), ", ")
}

// queueQueries contains the differences between databases for a [Queue].
type queueQueries struct {
	table string
	// index is the statement for the index over the times, if table does not create it.
	index string
	// insert is the end of the INSERT statement. It makes the statement omit stored keys, so that
	// it affects fewer rows. It is "" if the statement fails instead.
	insert string
	// duplicate reports whether an error means that a key is stored.
	duplicate func(error) bool
	// lockTimeout is a statement that limits the waits of a transaction, with the milliseconds.
	lockTimeout string
	// write makes a transaction that begins with a query a writer.
	write string
	// forget deletes up to the given number of old keys. Its parameters are the application and
	// the age.
	forget string
}

var queries = map[Dialect]*queueQueries{
	Postgres: {
		table: `CREATE TABLE IF NOT EXISTS {table} (
  app TEXT COLLATE "C" NOT NULL,
  queue TEXT COLLATE "C" NOT NULL,   -- its ARN, or the scope
  record TEXT COLLATE "C" NOT NULL,  -- the record ID, with "+2" for record 2 of an aggregate
  handled TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (app, queue, record)
)`,
		index:       "CREATE INDEX IF NOT EXISTS {index} ON {table} (app, handled)",
		insert:      " ON CONFLICT (app, queue, record) DO NOTHING",
		duplicate:   func(err error) bool { return sqltable.SQLState(err) == "23505" || sqltable.SQLState(err) == "40001" },
		lockTimeout: "SET LOCAL lock_timeout = ",
		forget: `DELETE FROM {table} WHERE ctid = ANY(ARRAY(
  SELECT ctid FROM {table} WHERE app = ? AND handled < {before} ORDER BY handled LIMIT {most} FOR UPDATE SKIP LOCKED))`,
	},
	MySQL: {
		table: `CREATE TABLE IF NOT EXISTS {table} (
  app VARBINARY(255) NOT NULL,
  queue VARBINARY(255) NOT NULL,   -- its ARN, or the scope
  record VARBINARY(128) NOT NULL,  -- the record ID, with "+2" for record 2 of an aggregate
  handled DATETIME NOT NULL,       -- UTC
  PRIMARY KEY (app, queue, record),
  INDEX (app, handled)
) ENGINE = InnoDB`,
		// The number of affected rows depends on a setting of the driver.
		duplicate: func(err error) bool { return sqltable.MySQLCode(err) == "1062" },
		forget:    "DELETE FROM {table} WHERE app = ? AND handled < {before} ORDER BY handled LIMIT {most}",
	},
	SQLite: {
		table: `CREATE TABLE IF NOT EXISTS {table} (
  app TEXT NOT NULL,
  queue TEXT NOT NULL,    -- its ARN, or the scope
  record TEXT NOT NULL,   -- the record ID, with "+2" for record 2 of an aggregate
  handled TEXT NOT NULL,  -- UTC
  PRIMARY KEY (app, queue, record)
) WITHOUT ROWID`,
		index:     "CREATE INDEX IF NOT EXISTS {index} ON {table} (app, handled)",
		insert:    " ON CONFLICT (app, queue, record) DO NOTHING",
		duplicate: func(error) bool { return false },
		write:     "UPDATE {table} SET handled = handled WHERE 1 = 0",
		forget: `DELETE FROM {table} WHERE (app, queue, record) IN (
  SELECT app, queue, record FROM {table} WHERE app = ? AND handled < {before} ORDER BY handled LIMIT {most})`,
	},
}
