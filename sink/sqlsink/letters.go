package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/shard"
)

// Letters returns a destination for [weir.FailurePolicy].Destination. It stores dead letters in the
// destination to, and then moves the position past their records. Without Letters, the next owner
// of a shard handles a dead-lettered record again if no later record of the shard is done.
func (s *Sink) Letters(to deadletter.Destination) deadletter.Destination {
	return deadletter.Func(func(ctx context.Context, letters []deadletter.Letter) error {
		if to == nil {
			return errors.New("sqlsink: the destination passed to Letters is nil")
		}
		if err := to.Put(ctx, letters); err != nil || len(letters) == 0 {
			return err
		}
		return s.pass(ctx, letters[len(letters)-1])
	})
}

// pass moves the position past the record of a letter. All earlier records have taken effect or
// were dead-lettered.
func (s *Sink) pass(ctx context.Context, l deadletter.Letter) error {
	at, err := shard.Parse(l.Position)
	if err == nil && at.Kind() != shard.Sequence {
		err = errors.New("it is not a position of a record")
	}
	if err != nil {
		return fmt.Errorf("sqlsink: the position of the dead letter %s: %w", l.ID, err)
	}
	_, err = s.transact(ctx, l.Stream, l.Shard, func(tx *sql.Tx, was row, found bool) (row, error) {
		switch {
		case !found:
			return was, fmt.Errorf("%w: the row of %s/%s is gone", ErrSetBack, l.Stream, l.Shard)
		case was.epoch > l.Epoch:
			s.fenced.Add(1)
			return was, fenced(was.epoch, l.Epoch)
		case at.Compare(was.at) <= 0:
			return was, nil
		}
		to := row{epoch: l.Epoch, at: at}
		return to, s.move(ctx, tx, l.Stream, l.Shard, to)
	})
	return err
}
