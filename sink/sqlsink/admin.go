package sqlsink

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/sqltable"
)

// Schema returns the statement that creates the table. It is for administrators who do not allow
// programs to change a schema.
func (s *Sink) Schema() string { return s.named(s.dialect.table) + ";\n" }

// Migrate creates the table unless it exists. It returns an error if the table exists and is not a
// table of positions.
//
// It may be repeated, and any number of processes may call it at the same time. No other function
// of the library calls it. It needs permissions to create and change tables, which workers and
// operators do not need: call it when a program is deployed, as a separate user.
func (s *Sink) Migrate(ctx context.Context) error {
	probe := s.named("SELECT app, stream, shard, epoch, position, ended, updated FROM {table} WHERE 1 = 0")
	if err := sqltable.Make(ctx, s.db, s.named(s.dialect.table), probe); err != nil {
		return fmt.Errorf("sqlsink: the table %s cannot be created, or is not a table of positions: %w", s.name, err)
	}
	return nil
}

// ResetEpochs admits owners of any epoch again, and returns the number of affected rows. Call it
// once if the leases of an application were deleted or lost. The epochs of leases then start again.
// Without ResetEpochs, each new owner looks like a previous owner, and fails with [ErrFenced].
// Positions and their guarantees do not change. If a worker that has lost its leases is still
// running, it may take turns with its successor.
func (s *Sink) ResetEpochs(ctx context.Context) (int, error) {
	return s.change(ctx, "resetting epochs", "UPDATE {table} SET epoch = 0 WHERE app = ? AND epoch <> 0", s.o.App)
}

// Forget removes the rows of shards that have ended and have not changed for a duration, and
// returns their number. The duration is measured by the database's clock. It must be at least a
// day, and longer than the retention of the stream. After a restore from a backup, the sink needs
// the rows to replay lost records and to recognize repeated ones. Call Forget occasionally if
// streams are split and merged often. The sink never calls Forget itself.
func (s *Sink) Forget(ctx context.Context, unchangedFor time.Duration) (int, error) {
	if unchangedFor < 24*time.Hour {
		return 0, fmt.Errorf("sqlsink: forgetting shards that ended %v ago: want at least 24h, and longer than the stream keeps records", unchangedFor)
	}
	return s.change(ctx, "removing rows of shards that have ended", "DELETE FROM {table} WHERE app = ? AND ended = 1 AND updated < "+s.dialect.before,
		s.o.App, s.dialect.ago(int64(unchangedFor/time.Second)))
}

// RemoveStream removes all rows of a stream, and returns their number. Use it for
// example for a stream that is deleted and created again under the same name. No worker that reads
// the stream may be running. Records that are read again after that take effect again.
func (s *Sink) RemoveStream(ctx context.Context, stream string) (int, error) {
	return s.change(ctx, "removing the rows of a stream", "DELETE FROM {table} WHERE app = ? AND stream = ?", s.o.App, stream)
}

// change runs a single statement. It returns the number of affected rows.
func (s *table) change(ctx context.Context, what, statement string, args ...any) (int, error) {
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
