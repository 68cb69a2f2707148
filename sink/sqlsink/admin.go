package sqlsink

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/sqltable"
)

// Schema returns the statement that creates the table, for administrators who allow no program to
// change a schema.
func (s *Sink) Schema() string { return s.named(s.dialect.table) + ";\n" }

// Migrate creates the table unless it exists. The sink never calls it itself. It may be called
// concurrently.
func (s *Sink) Migrate(ctx context.Context) error {
	probe := s.named("SELECT app, stream, shard, epoch, position, ended, updated FROM {table} WHERE 1 = 0")
	if err := sqltable.Make(ctx, s.db, s.named(s.dialect.table), probe); err != nil {
		return fmt.Errorf("sqlsink: the table %s cannot be made, or is not one of positions: %w", s.table, err)
	}
	return nil
}

// ResetEpochs admits owners of any epoch again. If the leases of an application are deleted or
// lost, epochs start again. Each owner then looks like a former one, and fails with [ErrFenced],
// until ResetEpochs is called once. Positions and their guarantees stay. If a worker that has lost
// its leases still runs, it may take turns with its successor. ResetEpochs returns the number of
// affected shards.
func (s *Sink) ResetEpochs(ctx context.Context) (int, error) {
	return s.change(ctx, "resetting epochs", "UPDATE {table} SET epoch = 0 WHERE app = ? AND epoch <> 0", s.o.App)
}

// Forget removes the rows of shards that have ended and were unchanged for a duration of at least a
// day, by the database's clock. Call it occasionally if streams are split and merged often. The
// sink never calls it itself. The duration must be longer than the stream's retention. After a
// restore from a backup, the sink needs these rows to replay lost records and to recognize repeated
// ones. Forget returns the number of removed rows.
func (s *Sink) Forget(ctx context.Context, unchangedFor time.Duration) (int, error) {
	if unchangedFor < 24*time.Hour {
		return 0, fmt.Errorf("sqlsink: forgetting shards that ended %v ago: want at least 24h, and longer than the stream keeps records", unchangedFor)
	}
	return s.change(ctx, "removing rows of shards that have ended", "DELETE FROM {table} WHERE app = ? AND ended = 1 AND updated < "+s.dialect.before,
		s.o.App, s.dialect.ago(int64(unchangedFor/time.Second)))
}

// RemoveStream removes all rows of a stream, for example one that is deleted and created again
// under the same name. No worker that reads it may be running. Records that are read again take
// effect again. RemoveStream returns the number of affected shards.
func (s *Sink) RemoveStream(ctx context.Context, stream string) (int, error) {
	return s.change(ctx, "removing the rows of a stream", "DELETE FROM {table} WHERE app = ? AND stream = ?", s.o.App, stream)
}

// change runs a single statement, and returns the number of affected rows.
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
