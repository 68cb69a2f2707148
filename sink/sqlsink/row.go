package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/shard"
)

// row is the row of a shard.
type row struct {
	epoch uint64 // highest epoch that has written the row
	// at is the position after the last record that took effect. Until a record has taken effect,
	// it is the position at which the first term began, or zero if that was the tip.
	at    weir.Position
	ended bool
}

// reached returns the position of the sink for weir. If the shard has ended, reached returns
// shard.End, but the row still keeps the position after the last record. The sink needs the kept
// position if the stream is re-created: the new shards have the same names, and their records come
// later.
func (r row) reached() weir.Position {
	if r.ended {
		return shard.End
	}
	return r.at
}

// querier is a *sql.DB or a *sql.Tx.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

const where = " WHERE app = ? AND stream = ? AND shard = ?"

// read reads the row of a shard. It appends locking to the query.
func (s *Sink) read(ctx context.Context, q querier, stream, id, locking string) (row, bool, error) {
	var (
		epoch, ended int64
		position     string
	)
	err := q.QueryRowContext(ctx, s.named("SELECT epoch, position, ended FROM {table}"+where+locking), s.o.App, stream, id).Scan(&epoch, &position, &ended)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return row{}, false, nil
	case noTable(err):
		return row{}, false, fmt.Errorf("sqlsink: there is no table %s: call Migrate once, or run the statement that Schema returns (%w)", s.table, err)
	case err != nil:
		return row{}, false, fmt.Errorf("sqlsink: reading the position of %s/%s: %w", stream, id, err)
	}
	r, err := decode(epoch, position, ended)
	if err != nil {
		return row{}, false, fmt.Errorf("sqlsink: the row of %s, %s/%s in %s: %w", s.o.App, stream, id, s.table, err)
	}
	return r, true, nil
}

// decode converts columns to a row.
func decode(epoch int64, position string, ended int64) (row, error) {
	at, err := shard.Parse(position)
	switch kind := at.Kind(); {
	case err != nil:
		return row{}, err
	case kind == shard.Tip || kind == shard.Finished:
		return row{}, fmt.Errorf("the position %q is not valid in a row", position)
	case epoch < 0:
		return row{}, fmt.Errorf("the epoch %d is below zero", epoch)
	case ended != 0 && ended != 1:
		return row{}, fmt.Errorf("ended is %d, which is neither 0 nor 1", ended)
	}
	return row{uint64(epoch), at, ended == 1}, nil
}

// verdict is the decision about a batch.
type verdict struct {
	todo []weir.Record // records that have not taken effect
	next row           // the row after the batch
	none bool          // there is nothing to do
}

// judge decides about a batch. was is the current row; it is valid only if found is true. known is
// the position of the row when this term last read it.
func judge(was row, found bool, known weir.Position, b *weir.Batch) (verdict, error) {
	switch {
	case !found:
		return verdict{}, fmt.Errorf("%w: the row of the shard, which was at %q, is gone", ErrSetBack, known)
	case b.Epoch > math.MaxInt64:
		return verdict{}, fmt.Errorf("sqlsink: the epoch %d is too large for a database", b.Epoch)
	case was.epoch > b.Epoch:
		return verdict{}, fenced(was.epoch, b.Epoch)
	case was.at.Compare(known) < 0:
		return verdict{}, fmt.Errorf("%w: the row of the shard is at %q, and was at %q", ErrSetBack, was.at, known)
	}
	v := verdict{todo: b.Records, next: row{epoch: b.Epoch, at: was.at, ended: b.End || was.ended}}
	for len(v.todo) > 0 {
		at := v.todo[0].Position()
		if at.IsZero() {
			return verdict{}, fmt.Errorf("sqlsink: a record has the invalid sequence number %.40q", v.todo[0].SequenceNumber)
		}
		if at.Compare(was.at) > 0 {
			break
		}
		v.todo = v.todo[1:]
	}
	if n := len(v.todo); n > 0 {
		v.next.at, v.next.ended = v.todo[n-1].Position(), b.End
	}
	v.none = len(v.todo) == 0 && v.next.ended == was.ended
	return v, nil
}

// fenced returns the error of an owner whose shard has a later owner.
func fenced(theirs, own uint64) error {
	return fmt.Errorf("%w: the epoch of the row is %d, and the epoch of this owner is %d (if there is no later owner, because leases were deleted or lost and epochs started again, "+
		"call ResetEpochs once)", ErrFenced, theirs, own)
}
