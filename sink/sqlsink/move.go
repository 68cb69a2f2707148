package sqlsink

import (
	"context"
	"database/sql"
	"errors"
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
	if _, err := s.open(ctx, t, nil); err != nil {
		return err
	}
	moved := false
	_, err := s.transact(ctx, t.Stream, t.Shard, func(tx *sql.Tx, was row, found bool) (row, error) {
		next, err := judgeMove(was, found, t.Epoch, from, to, end)
		if err != nil || next == was {
			return was, err
		}
		if err := s.move(ctx, tx, t.Stream, t.Shard, next); err != nil {
			return was, err
		}
		moved = true
		return next, apply(ctx, tx)
	})
	switch {
	case errors.Is(err, ErrFenced):
		s.fenced.Add(1)
	case errors.Is(err, ErrSetBack), errors.Is(err, ErrTxEnded):
		return weir.Stop(err) // a retry cannot fix it
	}
	if err == nil && moved {
		s.batches.Add(1)
	}
	return err
}

// judgeMove returns the row after a move. The row is unchanged if the effect is already in the
// database.
func judgeMove(was row, found bool, epoch uint64, from, to weir.Position, end bool) (row, error) {
	switch c := was.at.Compare(from); {
	case !found:
		return row{}, fmt.Errorf("%w: the row of the shard, which was at %q, is gone", ErrSetBack, from)
	case was.epoch > epoch:
		return row{}, fenced(was.epoch, epoch)
	case was.at.Compare(to) >= 0 && c > 0 && (was.ended || !end), c == 0 && was.ended:
		return was, nil
	case c < 0 && !was.at.IsZero():
		return row{}, fmt.Errorf("%w: the row of the shard is at %q, and was at %q", ErrSetBack, was.at, from)
	case c > 0 && was.at.Compare(to) < 0:
		return row{}, fmt.Errorf("sqlsink: the row is at %q, between %q and %q: another Move used different steps", was.at, from, to)
	}
	return row{epoch: epoch, at: later(was.at, to), ended: end}, nil
}

func later(a, b weir.Position) weir.Position {
	if a.Compare(b) > 0 {
		return a
	}
	return b
}
