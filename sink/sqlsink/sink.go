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
	// ErrFenced is wrapped by the error of a handler that comes too late: an owner of the shard
	// with a higher epoch was here. It wraps [weir.ErrLeaseLost].
	ErrFenced = fmt.Errorf("sqlsink: a later owner of the shard was here: %w", weir.ErrLeaseLost)
	// ErrSetBack is wrapped by the error of Run when the position of a shard is before where it has
	// been in this term, or gone: the database was set back, or its rows were changed, while a
	// worker ran. Nothing was skipped. Start the workers again: they read from where the database
	// is.
	ErrSetBack = errors.New("sqlsink: the database was set back while a worker ran")
	// ErrTxEnded is wrapped by the error of Run when a [Func] has committed or rolled back the
	// transaction itself.
	ErrTxEnded = errors.New("sqlsink: the function has ended the transaction, which is the sink's to end")
	// ErrLocked is wrapped by the error of a handler that has waited for Options.LockTimeout.
	ErrLocked = errors.New("sqlsink: another transaction holds the position of the shard")
)

// Options say how a [Sink] uses its database.
type Options struct {
	// Dialect is the database's. It has to be given.
	Dialect Dialect
	// App names the application, 1 to 255 bytes, as [weir.Options].App does. It has to be given.
	// Applications that share a table have positions of their own.
	App string
	// Table is the name of the table of positions, "weir_positions" by default: a letter or
	// underscore, then letters, digits and underscores, at most 60.
	Table string
	// Schema is where the table is: a schema of Postgres, a database of MySQL. "", the default, is
	// the one that the connection has chosen. The form is that of Table.
	Schema string
	// LockTimeout is how long a batch waits while another transaction holds the position of its
	// shard, such as that of an owner before that is being carried out; then it fails, and is tried
	// again like any other failure. Defaults to 5 s, 1 ms to 1 h.
	LockTimeout time.Duration
	// MaxIdle is how long a transaction may wait for its process before Postgres rolls it back.
	// Without a bound a machine that vanishes would hold its shards up for hours. It has to be
	// longer than a [Func] works between two statements. Defaults to 1 min, 100 ms to 24 h. It is
	// of no effect on other databases.
	MaxIdle time.Duration
}

// Func gives records their effects, all of them through tx, and must not end tx. b has the records
// of a batch that have had no effect yet; they are empty only when b.End is set. b's progress is
// the transaction's: [weir.Batch.Done] and [weir.Batch.Checkpoint] fail. After an error, and after
// a panic, nothing has happened, and it is called again after a pause as handlers are; see
// [weir.FailedAt], [weir.Reject] and [weir.Stop]. ctx ends as a handler's does, and the transaction
// with it.
type Func func(ctx context.Context, tx *sql.Tx, b *weir.Batch) error

// Sink keeps the positions of an application in a database, where the effects of its records are.
// It is safe for concurrent use, by any number of processes.
type Sink struct {
	db      *sql.DB
	dialect *dialect
	o       Options
	table   string
	turn    chan struct{} // held by the writer of this process, where the database has but one; else nil

	batches, records, skipped, fenced, unknown atomic.Uint64
}

// Counts are what a sink has done since it was made.
type Counts struct {
	Batches uint64 // transactions that were committed
	Records uint64 // whose effects they have
	Skipped uint64 // records that came again
	Fenced  uint64 // calls that were refused because a later owner was here
	// Unknown is how many commits failed so that they may have taken effect. The calls that follow
	// find out.
	Unknown uint64
}

// Counts returns the counts.
func (s *Sink) Counts() Counts {
	return Counts{s.batches.Load(), s.records.Load(), s.skipped.Load(), s.fenced.Load(), s.unknown.Load()}
}

const maxName = 255 // bytes, of an application

var tableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,59}$`)

// New returns a Sink on a database, which stays the caller's to close. It fails on options that
// make no sense and does not touch the database.
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

// Handlers is for [weir.Consumer.RunShards]. apply is called by one goroutine at a time for each
// shard, by many for different shards.
func (s *Sink) Handlers(apply Func) weir.ShardHandlers {
	return weir.ShardHandlers{
		Open: func(ctx context.Context, t weir.Term) (weir.ShardHandler, error) {
			if apply == nil {
				return nil, weir.Stop(errors.New("sqlsink: Handlers got no function"))
			}
			return s.open(ctx, t, apply)
		},
		Position: s.Position,
	}
}

// Position is how far the sink is with a shard, as [weir.ShardHandlers].Position wants it.
func (s *Sink) Position(ctx context.Context, stream, shard string) (weir.Position, error) {
	at, there, err := s.read(ctx, s.db, stream, shard, "")
	if err != nil || !there {
		return weir.Position{}, err
	}
	return at.reached(), nil
}

// quoted is a name that may be a reserved word.
func (d *dialect) quoted(name string) string {
	if d.lower {
		name = strings.ToLower(name)
	}
	return d.quote + name + d.quote
}

// named puts the name of the table into a statement, and writes its parameters as the database
// wants them.
func (s *Sink) named(query string) string {
	query = strings.ReplaceAll(query, "{table}", s.table)
	if s.dialect.dollars {
		query = sqltable.Numbered(query)
	}
	return query
}
