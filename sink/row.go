package sink

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/shard"
)

var (
	// ErrFenced is the error of a handler that is too late: an owner of the shard with a higher
	// epoch has written the row. It wraps [weir.ErrLeaseLost].
	ErrFenced = fmt.Errorf("sink: a later owner has written the shard's row: %w", weir.ErrLeaseLost)
	// ErrSetBack is the error of Run if a row is missing, or is before a position that it had
	// earlier in this term. The database was restored, or its rows were changed, while a worker was
	// running. No record was skipped. Start the workers again: they read from the position in the
	// database.
	ErrSetBack = errors.New("sink: the database was restored to an earlier state while a worker ran")
)

// Key names a row.
type Key struct {
	Stream, Shard string
	// Of is the number of partitions that the row's partition is one of, and Partition is 0 to
	// Of-1. Both are 0 in the row of the shard itself.
	Partition, Of int
}

// String returns the names of the stream and the shard, and for the row of a partition also the
// partition and the number of partitions.
func (k Key) String() string {
	if k.Of == 0 {
		return k.Stream + "/" + k.Shard
	}
	return fmt.Sprintf("%s/%s/%d/%d", k.Stream, k.Shard, k.Partition, k.Of)
}

// compare orders the keys of one shard, so that all owners lock its rows in the same order.
func (k Key) compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Of, other.Of), cmp.Compare(k.Partition, other.Partition))
}

// Row is the state of a shard, or of a partition of a shard.
type Row struct {
	Epoch uint64 // highest epoch of an owner that has written the row
	// At is the position after the last record whose effects are stored. Until then, it is the
	// position at which the first term began, or zero if that was the tip of the stream. In the row
	// of a shard with partitions, the effects of all records before At are stored.
	At weir.Position
	// Ended means that the shard has no records after At. Only the row of a shard can have it.
	Ended bool
	// Split means that rows of partitions may have effects of records after At. Only the row of a
	// shard can have it.
	Split bool
}

// reached returns the position of the sink for weir. If the shard has ended, reached returns
// shard.End, but the row still keeps the position after the last record. The sink needs the kept
// position if the stream is re-created: the new shards have the same names, and their records come
// later.
func (r Row) reached() weir.Position {
	if r.Ended {
		return shard.End
	}
	return r.At
}

// Rows keeps the rows of an application in a database. T is a transaction of that database. Package
// sinktest tests an implementation. All methods may be called concurrently, by several processes.
type Rows[T any] interface {
	// Read returns the rows of a shard: its own, and those of its partitions. It must see every
	// transaction that was committed before Read was called.
	Read(ctx context.Context, stream, shard string) (map[Key]Row, error)
	// Make adds a row, unless a row with this key exists.
	Make(ctx context.Context, k Key, r Row) error
	// Update begins a transaction, and locks the row until the transaction ends. It calls decide
	// with the row, or with found false if there is none. If decide returns a row, Update stores
	// that row, calls effects unless it is nil, and commits. The row is stored before the effects,
	// so that both are committed even if the effects commit the transaction themselves.
	//
	// If decide returns nil or an error, and if effects returns an error or panics, Update rolls
	// everything back. It returns the error. If ctx ends before the commit begins, Update rolls
	// back as well. If the result of a commit is unknown, Update returns an error: the transaction
	// may have taken effect, and it cannot take effect any more once another Update has locked the
	// row.
	Update(ctx context.Context, k Key, decide func(was Row, found bool) (*Row, error), effects func(ctx context.Context, tx T) error) error
	// Insert adds a row in a transaction, unless a row with this key exists.
	Insert(ctx context.Context, tx T, k Key, r Row) error
	// Prune removes, in a transaction, the rows of partitions of a shard whose Of is not keep.
	Prune(ctx context.Context, tx T, stream, shard string, keep int) error
}
