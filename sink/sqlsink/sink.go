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
)

var (
	// ErrFenced is wrapped by the error of a handler that is too late: an owner of the shard with a
	// higher epoch has written the row. It wraps [weir.ErrLeaseLost].
	ErrFenced = fmt.Errorf("sqlsink: a later owner of the shard was here: %w", weir.ErrLeaseLost)
	// ErrSetBack is wrapped by the error of Run if the position of a shard is before its value
	// earlier in this term, or is gone: the database was restored, or its rows were changed, while
	// a worker ran. Nothing was skipped. Start the workers again: they read from the position in
	// the database.
	ErrSetBack = errors.New("sqlsink: the database was set back while a worker ran")
	// ErrTxEnded is wrapped by the error of Run if a [Func] has committed or rolled back its
	// transaction.
	ErrTxEnded = errors.New("sqlsink: the function has ended the transaction, which only the sink may end")
	// ErrLocked is wrapped by the error of a handler that has waited for Options.LockTimeout.
	ErrLocked = errors.New("sqlsink: another transaction holds the position of the shard")
)

// Options configures a [Sink].
type Options struct {
	// Dialect is the kind of the database. Required.
	Dialect Dialect
	// App is the name of the application, 1 to 255 bytes, as in [weir.Options].App. Required.
	// Applications that share a table have separate positions.
	App string
	// Table is the name of the table of positions, "weir_positions" by default: a letter or
	// underscore, then letters, digits and underscores, at most 60.
	Table string
	// Schema contains the table: a schema of Postgres, or a database of MySQL. The default "" is
	// the one that the connection has selected. The form is that of Table.
	Schema string
	// LockTimeout is how long a batch waits while another transaction holds the position of its
	// shard, for example that of the previous owner. After that the batch fails, and is retried
	// like after any other failure. Defaults to 5 s, 1 ms to 1 h.
	LockTimeout time.Duration
	// MaxIdle is how long a transaction may wait for its process before Postgres rolls it back.
	// Without a limit a machine that disappears would block its shards for hours. It must be longer
	// than a [Func] works between two statements. Defaults to 1 min, 100 ms to 24 h. It has no
	// effect on other databases.
	MaxIdle time.Duration
}

// Func applies the records. It must write only through tx and must not end tx. b contains the
// records of a batch that have not taken effect yet. They are empty only if b.End is set. The
// progress of b belongs to the transaction: [weir.Batch.Done] and [weir.Batch.Checkpoint] fail.
// After an error or a panic the transaction is rolled back, and Func is called again after a pause
// like other handlers; see [weir.FailedAt], [weir.Reject] and [weir.Stop]. ctx ends as a handler's
// does, and the transaction ends with it.
type Func func(ctx context.Context, tx *sql.Tx, b *weir.Batch) error

// Sink keeps the positions of an application in the database that contains the effects of its
// records. It is safe for concurrent use, by any number of processes.
type Sink struct {
	db      *sql.DB
	dialect *dialect
	o       Options
	table   string
	// held by the writer of this process, if the database allows only one; otherwise nil
	turn chan struct{}

	batches, records, skipped, fenced, unknown atomic.Uint64
}

// Counts are the numbers of events since a sink was made.
type Counts struct {
	Batches uint64 // committed transactions
	Records uint64 // records in these transactions
	Skipped uint64 // repeated records
	Fenced  uint64 // calls that were refused because of a later owner
	// Unknown is the number of commits that failed and may have taken effect. The following calls
	// find out.
	Unknown uint64
}

// Counts returns the counts.
func (s *Sink) Counts() Counts {
	return Counts{s.batches.Load(), s.records.Load(), s.skipped.Load(), s.fenced.Load(), s.unknown.Load()}
}

const maxName = 255 // bytes of an application's name

var tableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,59}$`)

// New returns a Sink on a database, which the caller must close. It returns an error for invalid
// options and does not access the database.
func New(db *sql.DB, o Options) (*Sink, error) {
	d := dialects[o.Dialect]
	switch {
	case db == nil:
		return nil, errors.New("sqlsink: db is nil: open it with database/sql")
	case d == nil:
		return nil, errors.New("sqlsink: Options.Dialect is not set: name the database's, such as sqlsink.Postgres")
	case o.App == "" || len(o.App) > maxName:
		return nil, fmt.Errorf("sqlsink: Options.App %.60q: want the application's name, 1 to %d bytes", o.App, maxName)
	}
	if o.Table == "" {
		o.Table = "weir_positions"
	}
	if o.LockTimeout == 0 {
		o.LockTimeout = 5 * time.Second
	}
	if o.MaxIdle == 0 {
		o.MaxIdle = time.Minute
	}
	const form = "want a letter or underscore, then letters, digits and underscores, at most 60"
	switch {
	case !tableForm.MatchString(o.Table):
		return nil, fmt.Errorf("sqlsink: Options.Table %.60q: %s", o.Table, form)
	case o.Schema != "" && (!d.schemas || !tableForm.MatchString(o.Schema)):
		return nil, fmt.Errorf("sqlsink: Options.Schema %.60q: %s, and a Dialect that has schemas", o.Schema, form)
	case o.LockTimeout < time.Millisecond || o.LockTimeout > time.Hour:
		return nil, fmt.Errorf("sqlsink: Options.LockTimeout %v must be between 1ms and 1h", o.LockTimeout)
	case o.MaxIdle < 100*time.Millisecond || o.MaxIdle > 24*time.Hour:
		return nil, fmt.Errorf("sqlsink: Options.MaxIdle %v must be between 100ms and 24h", o.MaxIdle)
	}
	s := &Sink{db: db, dialect: d, o: o, table: d.quoted(o.Table)}
	if o.Schema != "" {
		s.table = d.quoted(o.Schema) + "." + s.table
	}
	if d.oneWriter {
		s.turn = make(chan struct{}, 1)
	}
	return s, nil
}

// Handlers returns the handlers for [weir.Consumer.RunShards]. apply is called by one goroutine at
// a time for each shard, and concurrently for different shards.
func (s *Sink) Handlers(apply Func) weir.ShardHandlers {
	return weir.ShardHandlers{
		Open: func(ctx context.Context, t weir.Term) (weir.ShardHandler, error) {
			if apply == nil {
				return nil, weir.Stop(errors.New("sqlsink: the function passed to Handlers is nil"))
			}
			return s.open(ctx, t, apply)
		},
		Position: s.Position,
	}
}

// Position returns the sink's position in a shard, for [weir.ShardHandlers].Position.
func (s *Sink) Position(ctx context.Context, stream, shard string) (weir.Position, error) {
	at, there, err := s.read(ctx, s.db, stream, shard, "")
	if err != nil || !there {
		return weir.Position{}, err
	}
	return at.reached(), nil
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
func (s *Sink) named(query string) string {
	query = strings.ReplaceAll(query, "{table}", s.table)
	if s.dialect.dollars {
		query = sqltable.Numbered(query)
	}
	return query
}
