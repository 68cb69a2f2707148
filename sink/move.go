package sink

import (
	"context"
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
// reading begins where the last Move ended. Do not use [Sink.Handlers] for the same application.
//
// Move returns an error that wraps [ErrFenced] if a later owner has written the row. If the
// position is before from, it returns an error that wraps [ErrSetBack] and ends Run. With
// partitions, Move returns an error. It may be called concurrently for different shards.
func (s *Sink[T]) Move(ctx context.Context, t weir.Term, from, to weir.Position, end bool, apply func(ctx context.Context, tx T) error) error {
	switch {
	case s.parts > 0:
		return weir.Stop(errors.New("sink: Move is for a sink without partitions: leave Options.Partitions out"))
	case from.IsZero() || to.Compare(from) < 0:
		return fmt.Errorf("sink: the move from %q to %q does not go forward", from, to)
	}
	of := Key{Stream: t.Stream, Shard: t.Shard}
	if _, err := s.firstRow(ctx, of, t); err != nil {
		return err
	}
	moved := false
	err := s.rows.Update(ctx, of, func(was Row, found bool) (*Row, error) {
		next, err := judgeMove(of, was, found, t.Epoch, from, to, end)
		if err != nil || next == was {
			return nil, s.counted(err)
		}
		return &next, nil
	}, func(ctx context.Context, tx T) error {
		moved = true
		return apply(ctx, tx)
	})
	if err == nil && moved {
		s.batches.Add(1)
	}
	return ending(err)
}

// judgeMove returns the row after a move. The row is unchanged if the effect is already in the
// database.
func judgeMove(k Key, was Row, found bool, epoch uint64, from, to weir.Position, end bool) (Row, error) {
	switch c := was.At.Compare(from); {
	case !found:
		return Row{}, fmt.Errorf("%w: the row of %s, which was at %q, is gone", ErrSetBack, k, from)
	case was.Epoch > epoch:
		return Row{}, fenced(was.Epoch, epoch)
	case was.Split:
		return Row{}, weir.Stop(fmt.Errorf("sink: %s has positions of partitions, which Move cannot move: use another application name for windows", k))
	case was.At.Compare(to) >= 0 && c > 0 && (was.Ended || !end), c == 0 && was.Ended:
		return was, nil
	case c < 0 && !was.At.IsZero():
		return Row{}, fmt.Errorf("%w: the row of %s is at %q, and was at %q", ErrSetBack, k, was.At, from)
	case c > 0 && was.At.Compare(to) < 0:
		return Row{}, fmt.Errorf("sink: the row is at %q, between %q and %q: another Move used different steps", was.At, from, to)
	}
	return Row{Epoch: epoch, At: later(was.At, to), Ended: end}, nil
}
