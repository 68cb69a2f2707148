package sqlsink

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/sqltable"
)

// Schema returns the statement that makes the table, for people who let nobody but themselves
// change a schema.
func (s *Sink) Schema() string { return s.named(s.dialect.table) + ";\n" }

// Migrate makes the table, unless it is there. It is never run unasked. Several may run it at once.
func (s *Sink) Migrate(ctx context.Context) error {
	probe := s.named("SELECT app, stream, shard, epoch, position, ended, updated FROM {table} WHERE 1 = 0")
	if err := sqltable.Make(ctx, s.db, s.named(s.dialect.table), probe); err != nil {
		return fmt.Errorf("sqlsink: the table %s cannot be made, or is not one of positions: %w", s.table, err)
	}
	return nil
}

// ResetEpochs lets owners of any epoch in again. Epochs begin anew when the leases of an
// application are deleted or lost: then each owner is taken for one that is late, and fails with
// [ErrFenced], until this was called once. Positions stay, and so does what they promise; but while
// a worker still runs that has lost its leases, it may take turns with its successor. It returns
// how many shards it was about.
func (s *Sink) ResetEpochs(ctx context.Context) (int, error) {
	return s.change(ctx, "resetting epochs", "UPDATE {table} SET epoch = 0 WHERE app = ? AND epoch <> 0", s.o.App)
}

// Forget removes the rows of shards that have ended, and were not changed for so long, at least a
// day, by the database's clock. Call it now and then where streams are split and merged often; it
// is never done unasked. It has to be longer than the stream keeps records: by these rows a
// database that was restored from a backup is given what it has lost, and records that are read
// again are known. It returns how many it removed.
func (s *Sink) Forget(ctx context.Context, unchangedFor time.Duration) (int, error) {
	if unchangedFor < 24*time.Hour {
		return 0, fmt.Errorf("sqlsink: forgetting shards that ended %v ago: want at least 24h, and longer than the stream keeps records", unchangedFor)
	}
	return s.change(ctx, "removing rows of shards that have ended", "DELETE FROM {table} WHERE app = ? AND ended = 1 AND updated < "+s.dialect.before,
		s.o.App, s.dialect.ago(int64(unchangedFor/time.Second)))
}

// RemoveStream removes all that is known of a stream, such as one that was deleted and is made anew
// under its name. No worker may be running that reads it. Records that are read again after that
// have their effects again. It returns how many shards it was about.
func (s *Sink) RemoveStream(ctx context.Context, stream string) (int, error) {
	return s.change(ctx, "removing the rows of a stream", "DELETE FROM {table} WHERE app = ? AND stream = ?", s.o.App, stream)
}

// change carries out a statement by itself, and returns how many rows it was about.
func (s *Sink) change(ctx context.Context, what, statement string, args ...any) (int, error) {
	if err := s.takeTurn(ctx); err != nil {
		return 0, err
	}
	defer s.endTurn()
	res, err := s.db.ExecContext(ctx, s.named(statement), args...)
	if err != nil {
		return 0, fmt.Errorf("sqlsink: %s: %w", what, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("sqlsink: %s: %w", what, err)
	}
	return int(n), nil
}
