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

// row is what the table has of a shard.
type row struct {
	epoch uint64 // the highest that was here
	// at is after the last record whose effects are here; before there was one it is where the
	// first term began, zero for the tip.
	at    weir.Position
	ended bool
}

// reached is how far the sink is, as weir wants to know it. A row that has ended keeps the position
// of its last record all the same: a stream that is made anew has shards of the same names, whose
// records come later.
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

// read reads the row of a shard; locking ends the query.
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

// decode makes a row of its columns.
func decode(epoch int64, position string, ended int64) (row, error) {
	at, err := shard.Parse(position)
	switch kind := at.Kind(); {
	case err != nil:
		return row{}, err
	case kind == shard.Tip || kind == shard.Finished:
		return row{}, fmt.Errorf("the position %q is none that a row has", position)
	case epoch < 0:
		return row{}, fmt.Errorf("the epoch %d is below zero", epoch)
	case ended != 0 && ended != 1:
		return row{}, fmt.Errorf("ended is %d, which is neither 0 nor 1", ended)
	}
	return row{uint64(epoch), at, ended == 1}, nil
}

// verdict is what becomes of a batch.
type verdict struct {
	todo []weir.Record // that have had no effect
	next row           // what the row is after it
	none bool          // there is nothing to do
}

// judge decides what becomes of a batch. was is the row, which is there if found is set; known is
// how far the term has seen it.
func judge(was row, found bool, known weir.Position, b *weir.Batch) (verdict, error) {
	switch {
	case !found:
		return verdict{}, fmt.Errorf("%w: the row of the shard is gone, which was at %q", ErrSetBack, known)
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
			return verdict{}, fmt.Errorf("sqlsink: a record has the sequence number %.40q, which is none", v.todo[0].SequenceNumber)
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

// fenced is the error of an owner that is too late.
func fenced(theirs, own uint64) error {
	return fmt.Errorf("%w: its epoch is %d, this one's %d (if there was none, because leases were deleted or lost and epochs began anew, "+
		"call ResetEpochs once)", ErrFenced, theirs, own)
}
