package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/sqltable"
	"github.com/weir-go/weir/sink"
)

var (
	// ErrFenced is the error of a handler that is too late: an owner of the shard with a higher
	// epoch has written the row. It wraps [weir.ErrLeaseLost].
	ErrFenced = sink.ErrFenced
	// ErrSetBack is the error of Run if the position of a shard is missing, or is before a position
	// that the row had earlier in this term. The database was restored, or its rows were changed,
	// while a worker was running. No record was skipped. Start the workers again: they read from
	// the position in the database.
	ErrSetBack = sink.ErrSetBack
	// ErrTxEnded is the error of Run if a [Func] has committed or rolled back its transaction.
	ErrTxEnded = errors.New("sqlsink: the function has ended the transaction, which only the sink may end")
	// ErrLocked is the error of a handler that has waited for Options.LockTimeout.
	ErrLocked = errors.New("sqlsink: another transaction holds the lock")
)

// Options configures a [Sink].
type Options struct {
	// Dialect is the kind of the database. Required.
	Dialect Dialect
	// App is the name of the application, as in [weir.Options].App, with 1 to 255 bytes. Required.
	// Applications that share a table have separate positions.
	App string
	// Table is the name of the table of positions. The default is "weir_positions". A name begins
	// with a letter or underscore, followed by letters, digits and underscores. It has at most 60
	// characters.
	Table string
	// Schema is the schema of Postgres, or the database of MySQL, that contains the table. Its form
	// is that of Table. The default "" is the schema or database that the connection has selected.
	Schema string
	// LockTimeout is how long a batch waits while another transaction holds the position of its
	// shard. Such a transaction may be that of the previous owner. After LockTimeout the batch
	// fails, and is retried as after any other failure. The default is 5 s. It ranges from 1 ms to
	// 1 h.
	LockTimeout time.Duration
	// Partitions is the number of partitions of each shard whose batches are applied at the same
	// time, 2 to 1,024. Each has its own position. With 0, the default, and with 1, the batches of
	// a shard are applied one after the other. The number may change between two runs. The
	// connection pool should allow as many connections as transactions run at once; see
	// [weir.Concurrency].MaxCalls. SQLite has one writer at a time, so it gains nothing.
	Partitions int
	// MaxIdle is how long a transaction may be idle before Postgres rolls it back. Without a limit,
	// a machine that disappears would block its shards for hours. MaxIdle must be longer than the
	// time that a [Func] works between two statements. The default is 1 min. It ranges from 100 ms
	// to 24 h. It has no effect on other databases.
	MaxIdle time.Duration
}

// Func applies the records. It must write only through tx and must not end tx. b contains the
// records of a batch that have not taken effect yet. b has no records only if b.End is set. The
// transaction determines the progress of b, so [weir.Batch.Done] and [weir.Batch.Checkpoint] fail.
//
// After an error or a panic, the transaction is rolled back. Func is called again after a backoff,
// like other handlers; see [weir.FailedAt], [weir.Reject] and [weir.Stop]. ctx ends like the
// context of a handler, and the transaction ends with it.
type Func func(ctx context.Context, tx *sql.Tx, b *weir.Batch) error

// Sink stores the positions of an application in the database that contains the effects of its
// records. It is safe for concurrent use by any number of processes.
type Sink struct {
	table
	o    Options
	core *sink.Sink[*sql.Tx]
}

// table is a table in a database.
type table struct {
	db      *sql.DB
	dialect *dialect
	name    string // quoted, with its schema
	// turn is held by the current writer of this process. It is nil if the database allows several
	// writers.
	turn    chan struct{}
	unknown atomic.Uint64 // commits whose result was unknown
}

// Counts contains the numbers of events since the sink was created.
type Counts struct {
	Batches uint64 // committed transactions
	Records uint64 // records in these transactions
	Skipped uint64 // repeated records
	Fenced  uint64 // calls that were refused because of a later owner
	// Unknown is the number of commits that failed but may have taken effect. The following calls
	// find out whether they did.
	Unknown uint64
}

// Counts returns the current counts.
func (s *Sink) Counts() Counts {
	c := s.core.Counts()
	return Counts{c.Batches, c.Records, c.Skipped, c.Fenced, s.unknown.Load()}
}

const maxName = 255 // bytes of an application's name

var tableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,59}$`)

// New returns a Sink for a database. The caller must close the database. New returns an error for
// invalid options, and does not access the database.
func New(db *sql.DB, o Options) (*Sink, error) {
	if o.Table == "" {
		o.Table = "weir_positions"
	}
	d, err := check("Options", db, o.Dialect, o.App, o.Table, o.Schema, &o.LockTimeout, &o.MaxIdle)
	if err != nil {
		return nil, err
	}
	s := &Sink{o: o}
	s.open(db, d, o.Schema, o.Table)
	if s.core, err = sink.New(rows{s}, sink.Options{Partitions: o.Partitions}); err != nil {
		return nil, fmt.Errorf("sqlsink: %w", err)
	}
	return s, nil
}

// check returns the dialect for the options of a sink, and sets the defaults of the times.
func check(options string, db *sql.DB, of Dialect, app, table, schema string, lockTimeout, maxIdle *time.Duration) (*dialect, error) {
	d := dialects[of]
	switch {
	case db == nil:
		return nil, errors.New("sqlsink: db is nil: open it with database/sql")
	case d == nil:
		return nil, fmt.Errorf("sqlsink: %s.Dialect is not set: name the database's, such as sqlsink.Postgres", options)
	case app == "" || len(app) > maxName:
		return nil, fmt.Errorf("sqlsink: %s.App %.60q: want the application's name, 1 to %d bytes", options, app, maxName)
	}
	if *lockTimeout == 0 {
		*lockTimeout = 5 * time.Second
	}
	if *maxIdle == 0 {
		*maxIdle = time.Minute
	}
	const form = "want a letter or underscore, then letters, digits and underscores, at most 60"
	switch {
	case !tableForm.MatchString(table):
		return nil, fmt.Errorf("sqlsink: %s.Table %.60q: %s", options, table, form)
	case schema != "" && (!d.schemas || !tableForm.MatchString(schema)):
		return nil, fmt.Errorf("sqlsink: %s.Schema %.60q: %s, and a Dialect that has schemas", options, schema, form)
	case *lockTimeout < time.Millisecond || *lockTimeout > time.Hour:
		return nil, fmt.Errorf("sqlsink: %s.LockTimeout %v must be between 1ms and 1h", options, *lockTimeout)
	case *maxIdle < 100*time.Millisecond || *maxIdle > 24*time.Hour:
		return nil, fmt.Errorf("sqlsink: %s.MaxIdle %v must be between 100ms and 24h", options, *maxIdle)
	}
	return d, nil
}

// open sets the fields of a table.
func (s *table) open(db *sql.DB, d *dialect, schema, name string) {
	s.db, s.dialect, s.name = db, d, d.quoted(name)
	if schema != "" {
		s.name = d.quoted(schema) + "." + s.name
	}
	if d.oneWriter {
		s.turn = make(chan struct{}, 1)
	}
}

// Handlers returns the handlers for [weir.Consumer.RunShards]. For each shard, and with
// Options.Partitions for each partition of a shard, one goroutine at a time calls apply. Otherwise
// apply is called concurrently. Without Partitions, RunShards refuses [weir.Options].Concurrency,
// because the position in the table needs the order of the shard.
func (s *Sink) Handlers(apply Func) weir.ShardHandlers {
	return s.core.Handlers(sink.Func[*sql.Tx](apply))
}

// Position returns the sink's position in a shard. Use it as the Position of [weir.ShardHandlers]
// or [weir.PullHandler].
func (s *Sink) Position(ctx context.Context, stream, shard string) (weir.Position, error) {
	return s.core.Position(ctx, stream, shard)
}

// quoted quotes a name, which may be a reserved word.
func (d *dialect) quoted(name string) string {
	if d.lower {
		name = strings.ToLower(name)
	}
	return d.quote + name + d.quote
}

// named puts the name of the table into a statement, and converts its parameters to the form of the
// database.
func (s *table) named(query string) string {
	query = strings.ReplaceAll(query, "{table}", s.name)
	if s.dialect.dollars {
		query = sqltable.Numbered(query)
	}
	return query
}
