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
// Handle is called by one goroutine at a time for each shard, by many for different shards.
// Returning nil means that all records of the batch are done: the checkpoint may pass them. Any
// other error, and a panic, means that what is not done is handled again after a pause: the whole
// batch, or what follows the last record that [Batch.Done] or [Batch.Checkpoint] named. A record is
// skipped only if the options say so: [Options].GiveUp puts a dead letter in its place,
// [Options].Filter drops it, and [Options].Expired says what follows if it has left the stream.
// [Stop] ends Run.
//
// ctx ends when the worker must stop with the shard; its cause is then [ErrLeaseLost],
// [ErrStopping] or [ErrStalled]. A handler should return soon after that; another worker may handle
// the same records already. ctx has the values of Run's context.
type Handler interface {
	Handle(ctx context.Context, b *Batch) error
}

// HandlerFunc lets a function be a [Handler].
type HandlerFunc func(ctx context.Context, b *Batch) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, b *Batch) error { return f(ctx, b) }

// RecordFunc lets a function that handles one record be a [Handler]. It is called with the records
// of a shard one after the other, in order. A record is done when it returns nil. After an error,
// and after a panic, it is called with the same record again. A lease that another worker is to
// have goes there after the record at hand, not after the batch.
type RecordFunc func(ctx context.Context, r Record) error

// Handle calls f for each record of b, until one fails. Its error is then [FailedAt] that record,
// where records can be given up.
func (f RecordFunc) Handle(ctx context.Context, b *Batch) (err error) {
	var r Record
	names := b.delivery != nil && b.delivery.of.adapter.opts.GiveUp.To != nil
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

// Batch is some consecutive records of one shard, as one call of a handler gets them. The handler
// owns Records: it may reslice, sort, filter and overwrite the slice, and keep it for longer than
// the call (unless [Options].ReuseBuffers is set). None of that changes the records that are
// handled again after a failure. Copies of a Batch share its progress.
type Batch struct {
	Stream string // the stream's name
	Shard  string // the shard's ID
	// Epoch grows with every change of the shard's owner. A sink that remembers the highest epoch
	// it has seen for a shard and refuses lower ones is safe from a worker that was paused in the
	// middle of a write.
	Epoch uint64
	// Records are in the order of the shard. They are empty only when End or Idle is set.
	Records []Record
	// Behind is how far the read was behind the tip of the shard; negative when the service did not
	// say. It says so at the end of an answer: the earlier parts of a large one have what the
	// answer before them said, or a negative.
	Behind time.Duration
	// End marks the last batch of a shard that was split or merged. Its children are handled after
	// it is done.
	End bool
	// Idle marks a call without records, because no record has been handled for
	// [ShardHandlers].Idle. Other handlers do not get such calls.
	Idle bool
	// Tip is set with Idle: at that time, by this machine's clock, all that was in the shard had
	// been read and handled. It is zero when that is not known, as while reads fail.
	Tip time.Time
	// Attempt is 1 for the first call with the batch's first record, and grows by one with each
	// call that failed at that record. It counts calls by this owner of the shard.
	Attempt int
	// FirstFailure is when the first of these calls failed; zero while Attempt is 1.
	FirstFailure time.Time

	delivery *handed         // nil in a batch of a Reader, or of a test
	use      uint64          // of the delivery
	given    []source.Record // with Parallel: the records, which the delivery forgets when they are done
	end      *Position       // after the last record, in a part of the delivery; else nil
}

var errNoDelivery = errors.New("weir: the batch did not come from a consumer")

// Done notes that every record of the batch up to and including r is done. It does not wait: the
// progress is saved with the worker's next beat. After a failure handling continues with the record
// after r. r must be a record of this batch, as it was handed over: Done fails for a record that
// was read with it and is in a later batch. Done of a record before the last one that is done
// changes nothing. It fails with [ErrLeaseLost] when another worker owns the shard. It may be
// called by several goroutines at a time, also after Handle has returned. A done record stays done,
// also if the call then fails with [FailedAt] that record.
func (b *Batch) Done(r Record) error {
	if b.delivery == nil {
		return errNoDelivery
	}
	return b.delivery.markDone(b, r)
}

// Checkpoint is [Batch.Done] that returns when the progress is durable in the store. It fails with
// [ErrLeaseLost] or the cause of ctx's end if that comes first; the progress may be saved all the
// same. Most handlers never call it: returning nil checkpoints the whole batch, without waiting. It
// may be called by several goroutines at a time, also after Handle has returned.
func (b *Batch) Checkpoint(ctx context.Context, r Record) error {
	if err := b.Done(r); err != nil {
		return err
	}
	return b.delivery.Save(ctx, b.use, r.Position())
}
