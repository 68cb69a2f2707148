package sqlsink

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/weir-go/weir"
)

// Move moves the position of a shard from one position to another, and calls apply in the same
// transaction. Use it for effects of many records at once, for example the results of windows. end
// means that the shard has ended at to. If the effect is already in the database, Move does not
// call apply. apply must not end tx.
//
// Use [Sink.Position] as the Position of [weir.PullHandler] or [weir.ShardHandlers], so that
// reading begins where the last Move ended. Do not use [Sink.Handlers] for the same App.
//
// Move returns [ErrFenced] if a later owner has written the row. If the position is before from, it
// returns an error that wraps [ErrSetBack] and ends Run. It may be called concurrently for
// different shards.
func (s *Sink) Move(ctx context.Context, t weir.Term, from, to weir.Position, end bool, apply func(ctx context.Context, tx *sql.Tx) error) error {
	if from.IsZero() || to.Compare(from) < 0 {
		return fmt.Errorf("sqlsink: the move from %q to %q does not go forward", from, to)
	}
	return s.core.Move(ctx, t, from, to, end, apply)
}
