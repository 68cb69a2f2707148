package weir

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/pull"
)

// PullHandler is a handler with its own loop over the batches of a shard, for example to collect
// records across batches. Pull is required. weir calls the functions of different shards
// concurrently. Their contexts have the values of RunPull's context. After an error or a panic,
// weir pauses and calls the function again. [Stop] ends Run.
type PullHandler struct {
	// Pull handles one shard for one term. weir calls it, in a separate goroutine, when the term
	// begins. The function ranges over [Puller.Batches] and returns nil after the end of the shard.
	// If it returns an error, or returns nil too early, weir pauses, calls it again, and reads the
	// records that are not done from the stream again. Required.
	Pull func(ctx context.Context, p *Puller) error

	// Idle makes [Puller.Batches] yield a batch without records, whose field Idle is true, when
	// there have been no records for this time, and again after each further such time. 100 ms to
	// 1 h; 0, the default, is never. With [FanOut], the batch may be up to 15 s late while there is
	// no subscription.
	Idle time.Duration

	// Position returns the position of a sink that keeps positions itself. It has the same rules as
	// [ShardHandlers].Position, and is optional.
	Position func(ctx context.Context, stream, shard string) (Position, error)

	// KeepsRecords declares that the function uses the records of a batch after it has requested
	// the next batch. RunPull then refuses [Options].ReuseBuffers, which would overwrite the
	// records. Defaults to false.
	KeepsRecords bool
}

// RunPull does what [Consumer.Run] does, with a function that pulls the batches of each shard.
//
// RunPull returns an [OptionError] before it reads anything if Pull is nil, if Idle is out of its
// range, with [Options].Concurrency, and with Options.ReuseBuffers if the function keeps records. A
// function that pulls handles its failures itself, so RunPull also refuses the options about
// records that fail: [FailurePolicy].Destination, and [FailNotJSON].
func (c *Consumer) RunPull(ctx context.Context, h PullHandler) error {
	t := termHandlers{of: "PullHandler", pull: h.Pull, idle: h.Idle, position: h.Position, keeps: h.KeepsRecords}
	if err := t.check(&c.opts); err != nil {
		return err
	}
	return c.run(ctx, nil, &t)
}

// Puller pulls the batches of a shard for one term. [PullHandler].Pull gets the Puller. After Pull
// has returned, no goroutine may read with the Puller.
type Puller struct {
	Term
	batches *pull.Puller[*Batch]
	term    *group.Term
}

// Batches yields the batches of the shard, in order, until the term ends. To mark the progress of a
// yielded batch, call [Batch.Done] or [Batch.Checkpoint]; both also work for earlier batches and
// from other goroutines. When Pull returns nil after the batch with End, all records are done. With
// [Options].ReuseBuffers, a batch is valid until the loop requests the next one, and its progress
// has to be marked before that.
//
// If the term ends before the shard does, the last pair has an error and no batch. The error is
// [ErrLeaseLost], [ErrStopping], [ErrStalled], or [ErrHandedOff] if another worker gets the lease.
// Pull should return soon after that. The shard's next owner handles the records that are not done.
// Batches is not for concurrent use.
func (p *Puller) Batches() iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		for {
			b, some, err := p.batches.Next(func(b *Batch) bool { return b.End })
			if err != nil {
				yield(nil, err)
			}
			if !some || !yield(b, nil) {
				return
			}
		}
	}
}

// Done marks everything before a position as done. It is for functions that do not keep the batches
// that are in progress. The position must not be after the last yielded record. Done may be called
// concurrently. It returns [ErrLeaseLost] if the shard belongs to another worker now.
func (p *Puller) Done(before Position) error {
	if err := p.checkDone(before); err != nil {
		return err
	}
	p.term.Advance(p.batches.Past(before))
	return nil
}

// Checkpoint does what Done does, and waits until the progress is durable in the store. If the
// lease is lost first, it returns [ErrLeaseLost]. If ctx ends first, it returns the cause of ctx.
// In both cases the progress may be saved all the same. Checkpoint may be called concurrently.
func (p *Puller) Checkpoint(ctx context.Context, before Position) error {
	if err := p.checkDone(before); err != nil {
		return err
	}
	return p.term.Save(ctx, p.batches.Past(before))
}

// checkDone returns an error if the records before a position cannot be marked as done.
func (p *Puller) checkDone(before Position) error {
	if lost := p.term.Lost(); lost != nil {
		return lost
	}
	if before.IsZero() || before.Compare(p.batches.Yielded()) > 0 && before != p.From {
		return fmt.Errorf("weir: the position %q is not in a batch that was handed over", before)
	}
	return nil
}

// Hold tells operators that the function keeps the shard's checkpoint in place on purpose, and why,
// for example "by an open window". An empty string ends the hold. Hold changes only reports: those
// of [Consumer.Shards] at once, and those in the store after 30 s. A hold also ends when the call
// of Pull that got the Puller returns. Later calls of Hold have no effect. Hold may be called
// concurrently.
func (p *Puller) Hold(why string) { p.batches.Hold(why) }
