package weir

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/internal/shardrun"
	"github.com/weir-go/weir/internal/source"
)

// Handler handles the records of an application, batch by batch.
//
// Calls for different shards run concurrently. For each shard, one goroutine at a time calls
// Handle, unless [Options].Concurrency is set. If Handle returns nil, all records of the batch are
// done, and the checkpoint may pass them. After an error or a panic, weir pauses and calls Handle
// again with the records that are not done: the whole batch, or the records after the last one that
// was passed to [Batch.Done] or [Batch.Checkpoint]. To end Run, return [Stop].
//
// weir skips a record only if an option says so: [Options].OnFailure puts a dead letter in its
// place, [Options].Filter or [UnpackOwn] drops it, and [Options].Expired applies to records that
// have left the stream.
//
// When the worker must stop handling the shard, ctx ends, and [context.Cause] returns
// [ErrLeaseLost], [ErrStopping] or [ErrStalled]. A handler should return soon after that, because
// another worker may already handle the same records. ctx has the values of the context that was
// passed to Run.
type Handler interface {
	Handle(ctx context.Context, b *Batch) error
}

// HandlerFunc makes a function a [Handler].
type HandlerFunc func(ctx context.Context, b *Batch) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, b *Batch) error { return f(ctx, b) }

// RecordFunc makes a function for single records a [Handler]. weir calls the function with the
// records of a shard one after the other, in order. A record is done when the function returns nil.
// After an error or a panic, the function gets the same record again. If the shard moves to another
// worker, it moves after the current record, not after the batch.
type RecordFunc func(ctx context.Context, r Record) error

// Handle calls f for each record of b, until one fails, ctx ends, or another worker is to get the
// shard. If [FailurePolicy].Destination is set, the error names that record, as [FailedAt] does.
func (f RecordFunc) Handle(ctx context.Context, b *Batch) (err error) {
	var r Record
	names := b.delivery != nil && b.delivery.of.adapter.opts.OnFailure.Destination != nil
	if names {
		defer func() {
			if p := recover(); p != nil {
				err = FailedAt(r, panicked("the handler", p))
			}
		}()
	}
	for _, r = range b.Records {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if b.delivery != nil && b.delivery.WantedBack() {
			return shardrun.ErrForHeir
		}
		if err := f(ctx, r); err != nil {
			if names {
				return FailedAt(r, err)
			}
			return err
		}
		if b.delivery == nil { // made by a test, say
			continue
		}
		if err := b.Done(r); err != nil {
			return err
		}
	}
	return nil
}

// Batch contains records of one shard, for one call of a handler. The handler owns the slice
// Records: it may reslice, sort, filter and overwrite it. Without [Options].ReuseBuffers the
// handler may also keep the slice after it has returned. Changes of the slice do not affect the
// records of the next call after a failure. Copies of a Batch share its progress.
type Batch struct {
	Stream string // the stream's name
	Shard  string // the shard's ID
	// Epoch grows with every change of the shard's owner. A worker that was paused in the middle of
	// a write may continue after another worker has taken the shard. A sink prevents such a late
	// write if it remembers the highest epoch of each shard and refuses writes with a lower epoch.
	Epoch uint64
	// Records are in the order of the shard. They are empty only when End or Idle is set.
	Records []Record
	// Partition is the partition of the records with [ShardHandlers].Partitions: 0 to Partitions-1.
	// Otherwise it is 0.
	Partition int
	// DoneBefore is a position before which all records of the shard are done, in all partitions.
	// weir sets it only with [ShardHandlers].Partitions. It is zero if none is done in this term.
	DoneBefore Position
	// Behind is the distance in time between the read of this batch and the newest record of the
	// shard. It is negative if it is unknown. The service sends the value at the end of an answer,
	// so the first batches of a large answer have the value of the previous answer.
	Behind time.Duration
	// End is true for the last batch of a shard that was split or merged. When that batch is done,
	// handling continues with the shard's children.
	End bool
	// Idle is true for a call without records, which the handler gets when it has had no records
	// for [ShardHandlers].Idle. Handlers without that option get no such calls. With
	// [PullHandler].Idle, a function that pulls gets such batches.
	Idle bool
	// Tip is a time, by this machine's clock, at which every record of the shard had been read and
	// handled. weir sets Tip only if Idle is true. Tip is zero if no such time is known, for
	// example while reads fail.
	Tip time.Time
	// Attempt is 1 for the first call with the batch's first record. It grows by one with each call
	// that fails at that record. Only calls by this owner of the shard count.
	Attempt int
	// FirstFailure is the time at which the first of these calls failed. It is zero while Attempt
	// is 1.
	FirstFailure time.Time

	delivery *handed         // nil in a batch of a Reader, or of a test
	use      uint64          // of the delivery
	given    []source.Record // with Concurrency: the records, which the delivery forgets when they are done
	end      *Position       // after the last record, in a part of the delivery; else nil
}

var errNoDelivery = errors.New("weir: the batch did not come from a consumer")

// Done marks the records of the batch up to and including r as done. It does not wait: the progress
// is saved with the worker's next heartbeat. After a failure, handling continues with the record
// after r.
//
// r must be a record of this batch. Done returns an error for other records, and [ErrLeaseLost] if
// another worker owns the shard. It changes nothing if a later record is already done. A record
// stays done even if the handler then returns [FailedAt] for it. Done may be called concurrently,
// and after Handle has returned.
func (b *Batch) Done(r Record) error {
	if b.delivery == nil {
		return errNoDelivery
	}
	return b.delivery.markDone(b, r)
}

// Checkpoint does what [Batch.Done] does, and waits until the progress is durable in the store. If
// the lease is lost first, it returns [ErrLeaseLost]. If ctx ends first, it returns the cause of
// ctx. In both cases the progress may be saved all the same. Most handlers never call Checkpoint:
// when they return nil, the whole batch is checkpointed without waiting. Checkpoint may be called
// concurrently, and after Handle has returned.
func (b *Batch) Checkpoint(ctx context.Context, r Record) error {
	if err := b.Done(r); err != nil {
		return err
	}
	return b.delivery.Save(ctx, b.use, r.Position())
}
