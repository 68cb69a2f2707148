package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/queue"
)

// QueueOptions configures a [Queue].
type QueueOptions struct {
	// Dialect is the kind of the database. Required.
	Dialect Dialect
	// App is the name of the application, with 1 to 255 bytes. Required. Applications that share a
	// table apply each record independently of each other.
	App string
	// Table is the name of the table of handled records. The default is "weir_handled". Its form is
	// that of [Options].Table, with at most 50 characters.
	Table string
	// Schema is the schema of Postgres, or the database of MySQL, that contains the table. The
	// default "" is the schema or database that the connection has selected.
	Schema string
	// Scope replaces the ARN of the queue in the keys of records, with 1 to 255 bytes. A record has
	// the same record ID in every queue of a stream. If the consumers of several queues use the
	// same Scope, such as the name of the stream, a record takes effect once although each queue
	// delivers it. The default "" is the ARN of the queue. Change it only while the queue is empty,
	// because it changes the keys: the sink does not recognize records with other keys.
	Scope string
	// Window is how long the key of a record is kept, by the database's clock. If the queue
	// delivers the record again after Window, it takes effect again. A queue delivers no record
	// that is older than the retention of its stream, so a Window as long as the retention is
	// enough. The default is 24 h, which is the default retention. It ranges from 1 min to 400
	// days.
	Window time.Duration
	// LockTimeout is how long a call waits for another transaction with one of its records. The
	// default is 5 s. It ranges from 1 ms to 1 h. MySQL itself may wait longer, for
	// innodb_lock_wait_timeout (50 s by default).
	LockTimeout time.Duration
	// MaxIdle is how long a transaction may be idle before Postgres rolls it back, as in [Options].
	// The default is 1 min. It ranges from 100 ms to 24 h.
	MaxIdle time.Duration
}

// QueueFunc applies records of a queue. It must write only through tx and must not end tx. records
// are those that have not taken effect yet, in the order of the call. There is at least one.
//
// After an error or a panic, the transaction is rolled back. If the error names records with
// [queue.Failed], QueueFunc is called again at once with the other records, in another transaction.
// ctx ends like the context of a handler, and the transaction ends with it.
type QueueFunc func(ctx context.Context, tx *sql.Tx, records []queue.Record) error

// Queue applies the records of Kinesis queues to a database exactly once. The transaction with the
// effects of a record also stores its key: the application, the ARN of the queue, the record ID,
// and the number of the record in its aggregate. A record whose key is stored has no effect again.
// The keys are deleted after [QueueOptions].Window, in small steps after other transactions.
//
// A Queue is safe for concurrent use by any number of processes.
type Queue struct {
	table
	o       QueueOptions
	queries *queueQueries
	index   string // quoted

	batches, records, skipped, forgotten, forgetFailed atomic.Uint64
	expiry                                             expiry
}

// QueueCounts contains the numbers of events since a [Queue] was created.
type QueueCounts struct {
	Batches uint64 // committed transactions
	Records uint64 // records in these transactions
	Skipped uint64 // repeated records
	// Unknown is the number of commits that failed but may have taken effect. The next calls with
	// their records find out whether they did.
	Unknown      uint64
	Forgotten    uint64 // keys that were deleted after Window
	ForgetFailed uint64 // attempts to delete keys that failed
}

// Counts returns the current counts.
func (q *Queue) Counts() QueueCounts {
	return QueueCounts{q.batches.Load(), q.records.Load(), q.skipped.Load(), q.unknown.Load(), q.forgotten.Load(), q.forgetFailed.Load()}
}

// mostIndexed is the maximum length of the table's name. The name of its index has a suffix.
const mostIndexed = 50

// NewQueue returns a Queue for a database. The caller must close the database. NewQueue returns an
// error for invalid options, and does not access the database.
func NewQueue(db *sql.DB, o QueueOptions) (*Queue, error) {
	if o.Table == "" {
		o.Table = "weir_handled"
	}
	if o.Window == 0 {
		o.Window = 24 * time.Hour
	}
	d, err := check("QueueOptions", db, o.Dialect, o.App, o.Table, o.Schema, &o.LockTimeout, &o.MaxIdle)
	switch {
	case err != nil:
		return nil, err
	case len(o.Table) > mostIndexed:
		return nil, fmt.Errorf("sqlsink: QueueOptions.Table %.60q has more than %d characters", o.Table, mostIndexed)
	case len(o.Scope) > maxName:
		return nil, fmt.Errorf("sqlsink: QueueOptions.Scope %.60q: want at most %d bytes", o.Scope, maxName)
	case o.Window < time.Minute || o.Window > 400*24*time.Hour:
		return nil, fmt.Errorf("sqlsink: QueueOptions.Window %v must be between 1m and 9600h", o.Window)
	}
	q := &Queue{o: o, queries: queries[o.Dialect], index: d.quoted(o.Table + "_handled")}
	q.open(db, d, o.Schema, o.Table)
	return q, nil
}

// Handler returns a handler for [queue.Consumer.Run]. It calls apply with the records of a call
// that have not taken effect, and acknowledges the others. [queue.Options].BatchSize limits the
// records of a transaction, and Concurrency the transactions at the same time. The connection pool
// should allow one connection more.
func (q *Queue) Handler(apply QueueFunc) queue.BatchFunc {
	return func(ctx context.Context, records []queue.Record) error {
		return q.Apply(ctx, records, apply)
	}
}

// Apply applies records as the handler of [Queue.Handler] does. Use it to handle dead letters
// again, with the records of [queue.FromLetter]: a record that has taken effect meanwhile has no
// effect again. Apply returns nil when all records have taken effect. It returns [ErrLocked] if
// another transaction with one of the records does not end.
func (q *Queue) Apply(ctx context.Context, records []queue.Record, apply QueueFunc) error {
	if apply == nil {
		return errors.New("sqlsink: the function passed to the Queue is nil")
	}
	var failed error
	for len(records) > 0 {
		err := q.once(ctx, records, apply)
		named := queue.FailedRecords(err, records)
		if err != nil && len(named) == 0 {
			return err
		}
		failed = errors.Join(failed, err)
		if err == nil {
			break
		}
		records = without(records, named)
	}
	return failed
}

// without returns the records that are not in named.
func without(records, named []queue.Record) (rest []queue.Record) {
	keys := map[string]bool{}
	for i := range named {
		keys[named[i].Key()] = true
	}
	for i := range records {
		if !keys[records[i].Key()] {
			rest = append(rest, records[i])
		}
	}
	return rest
}

// once applies records in one transaction.
func (q *Queue) once(ctx context.Context, records []queue.Record, apply QueueFunc) error {
	keys, err := q.keysOf(records)
	if err != nil {
		return err
	}
	var fresh []queue.Record
	known := false // whether the next attempt first reads which keys are stored
	begin := func(own context.Context) (tx *sql.Tx, err error) {
		err = q.untilUnlocked(ctx, fmt.Sprintf("%d records from %s", len(records), records[0].Key()), q.o.LockTimeout, func() (err error) {
			var stored map[recordKey]bool
			for {
				tx, stored, err = q.insert(own, keys, known)
				if !errors.Is(err, errStored) || known {
					break
				}
				known = true
			}
			fresh = q.fresh(records, stored)
			return err
		})
		return tx, err
	}
	err = q.transact(ctx, begin, func(tx *sql.Tx) (bool, error) {
		if len(fresh) == 0 {
			return false, nil
		}
		return true, apply(ctx, tx, fresh)
	})
	if err != nil {
		return err
	}
	q.skipped.Add(uint64(len(records) - len(fresh)))
	if len(fresh) > 0 {
		q.batches.Add(1)
		q.records.Add(uint64(len(fresh)))
		q.forgetSome(ctx, len(fresh))
	}
	return nil
}

// fresh returns the records whose keys are not stored, each once.
func (q *Queue) fresh(records []queue.Record, stored map[recordKey]bool) (fresh []queue.Record) {
	seen := make(map[recordKey]bool, len(records))
	for i := range records {
		k := q.keyOf(&records[i])
		if !stored[k] && !seen[k] {
			fresh = append(fresh, records[i])
		}
		seen[k] = true
	}
	return fresh
}
