package weir

import (
	"context"
	"errors"
	"time"
)

// Handler handles the records of an application, batch by batch.
//
// Handle is called by one goroutine at a time for each shard, by many for different shards. Returning nil means that
// all records of the batch are done: the checkpoint may pass them. Any other error, and a panic, means that the batch is handled again, whole or
// from the last [Batch.Checkpoint], after a pause; nothing is ever skipped. [Stop] ends Run instead.
//
// ctx ends when the worker must not go on with the shard: its cause is then [ErrLeaseLost] or [ErrStopping]. A handler
// should return soon after that; another worker may handle the same records already.
type Handler interface {
	Handle(ctx context.Context, b *Batch) error
}

// HandlerFunc lets a function be a [Handler].
type HandlerFunc func(ctx context.Context, b *Batch) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, b *Batch) error { return f(ctx, b) }

// Batch is some consecutive records of one shard. It belongs to the handler for the length of the call; Records and
// what they point to may be kept for longer.
type Batch struct {
	Stream string // the stream's name
	Shard  string // the shard's ID
	// Epoch grows with every change of the shard's owner. A sink that remembers the highest epoch it has seen for a shard and
	// refuses lower ones is safe from a worker that was paused in the middle of a write.
	Epoch uint64
	// Records are in the order of the shard. They may be empty when End is set.
	Records []Record
	// Behind is how far the read was behind the tip of the shard; negative when the service did not say. It says so at the end of an answer: the
	// earlier parts of a large one have what the answer before them said, or a negative.
	Behind time.Duration
	// End marks the last batch of a shard that was split or merged. Its children are handled after it is done.
	End bool

	checkpoint func(context.Context, Position) error
	saved      Position // the highest position that Checkpoint was called with
}

// Checkpoint saves that everything up to and including r is done, and returns when that is durable. r must be a record of
// this batch. It fails with [ErrLeaseLost] when the shard belongs to somebody else now, or with ctx's error.
// Most handlers never call it: returning nil checkpoints the whole batch, without waiting.
func (b *Batch) Checkpoint(ctx context.Context, r Record) error {
	if b.checkpoint == nil {
		return errors.New("weir: Checkpoint of a batch that did not come from a consumer")
	}
	p := r.Position()
	if len(b.Records) == 0 || p.Compare(b.Records[0].Position()) < 0 || p.Compare(b.Records[len(b.Records)-1].Position()) > 0 {
		return errors.New("weir: Checkpoint of a record that is not in the batch")
	}
	if err := b.checkpoint(ctx, p); err != nil {
		return err
	}
	if p.Compare(b.saved) > 0 {
		b.saved = p
	}
	return nil
}
