package sink

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/weir-go/weir"
)

// mostPartitions is the limit of [weir.ShardHandlers].Partitions.
const mostPartitions = 1024

// Options configures a [Sink].
type Options struct {
	// Partitions is the number of partitions of each shard that are handled at the same time, 2 to
	// 1,024. With 0, the default, and with 1, the batches of a shard are handled one after the
	// other.
	Partitions int
}

// Func applies the records of a batch through the transaction tx. It must not end tx. b contains
// the records that have not taken effect yet. b has no records only if b.End is set. The
// transaction determines the progress of b, so [weir.Batch.Done] and [weir.Batch.Checkpoint] fail.
//
// After an error or a panic, the transaction is rolled back. Func is called again after a backoff,
// like other handlers; see [weir.FailedAt], [weir.Reject] and [weir.Stop].
type Func[T any] func(ctx context.Context, tx T, b *weir.Batch) error

// Sink applies records exactly once to a database. It is safe for concurrent use by any number of
// processes.
type Sink[T any] struct {
	rows  Rows[T]
	parts int // 0 without partitions

	batches, records, skipped, fenced atomic.Uint64
}

// Counts contains the numbers of events since the sink was created.
type Counts struct {
	Batches uint64 // committed transactions
	Records uint64 // records in these transactions
	Skipped uint64 // repeated records
	Fenced  uint64 // calls that were refused because of a later owner
}

// Counts returns the current counts.
func (s *Sink[T]) Counts() Counts {
	return Counts{s.batches.Load(), s.records.Load(), s.skipped.Load(), s.fenced.Load()}
}

// New returns a Sink whose positions are in rows. It returns an error for invalid options, and does
// not access the database.
func New[T any](rows Rows[T], o Options) (*Sink[T], error) {
	switch {
	case rows == nil:
		return nil, errors.New("sink: rows is nil: pass the rows of the application")
	case o.Partitions < 0 || o.Partitions > mostPartitions:
		return nil, fmt.Errorf("sink: Options.Partitions %d must be between 2 and %d, or 0 for one batch after the other", o.Partitions, mostPartitions)
	case o.Partitions == 1:
		o.Partitions = 0
	}
	return &Sink[T]{rows: rows, parts: o.Partitions}, nil
}

// Handlers returns the handlers for [weir.Consumer.RunShards]. weir calls apply concurrently for
// different shards and partitions. For one partition, and for a shard without partitions, one
// goroutine at a time calls apply.
func (s *Sink[T]) Handlers(apply Func[T]) weir.ShardHandlers {
	return weir.ShardHandlers{
		Open: func(ctx context.Context, t weir.Term) (weir.ShardHandler, error) {
			if apply == nil {
				return nil, weir.Stop(errors.New("sink: the function passed to Handlers is nil"))
			}
			return s.open(ctx, t, apply)
		},
		Position:   s.Position,
		Partitions: s.parts,
	}
}

// Position returns the sink's position in a shard. Use it as the Position of [weir.ShardHandlers].
func (s *Sink[T]) Position(ctx context.Context, stream, shard string) (weir.Position, error) {
	rows, err := s.rows.Read(ctx, stream, shard)
	if err != nil {
		return weir.Position{}, err
	}
	return rows[Key{Stream: stream, Shard: shard}].reached(), nil
}

// makePartition makes the row of a partition, for records up to last, unless the row exists. The
// transaction locks the row of the shard, so that an owner that is too late makes no row. known is
// the position of the shard's row when this term last read it. If the shard's row covers the
// records, covered is set, and makePartition makes no row.
func (s *Sink[T]) makePartition(ctx context.Context, k Key, epoch uint64, known, last weir.Position) (covered bool, err error) {
	var at weir.Position
	of := Key{Stream: k.Stream, Shard: k.Shard}
	err = s.rows.Update(ctx, of, func(was Row, found bool) (*Row, error) {
		var err error
		if covered, err = checkSplit(of, was, found, known, epoch, last); err != nil || covered {
			return nil, s.counted(err)
		}
		at = was.At
		return &Row{Epoch: epoch, At: was.At, Split: true}, nil
	}, func(ctx context.Context, tx T) error {
		return s.rows.Insert(ctx, tx, k, Row{Epoch: epoch, At: at})
	})
	return covered, err
}

// counted returns err, and counts it if it wraps [ErrFenced].
func (s *Sink[T]) counted(err error) error {
	if errors.Is(err, ErrFenced) {
		s.fenced.Add(1)
	}
	return err
}
