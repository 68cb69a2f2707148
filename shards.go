package weir

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/pull"
)

// Term is one holding of one shard's lease by this worker, from when the lease is taken until it is
// lost, handed off, given back or the shard has ended.
type Term struct {
	Stream string // the stream's name
	Shard  string // the shard's ID
	Epoch  uint64 // see [Batch]
	// From is where reading begins: the result of [ShardHandlers].Position, or the lease's
	// checkpoint.
	From Position
}

// ShardHandler handles one shard for one term.
type ShardHandler interface {
	Handler
	// Close is called once, when the term ends: after the last call of Handle has returned, and
	// before the lease goes to another worker unless it is lost already. ctx is as for Handle; it
	// may have ended. Records are handled again after Close only if they were not done.
	Close(ctx context.Context, why EndReason)
}

// ShardHandlers make a handler for each term, for handlers that keep something for each shard. Open
// or Pull is required. The functions are called from the goroutine of the shard, concurrently for
// different shards, with the values of Run's context. Their errors and panics are retried after a
// pause, as those of a handler are; [Stop] ends Run.
type ShardHandlers struct {
	// Open makes the handler of a term, before anything is read. ctx is as for Handle.
	Open func(ctx context.Context, t Term) (ShardHandler, error)

	// Pull is for handlers with their own loop: it is called when a term begins, ranges over
	// [Shard.Batches], and returns nil after the shard's end. When it returns an error, or nil
	// before the end, it is called again after a pause and gets the records that are not done from
	// the stream again.
	Pull func(ctx context.Context, s *Shard) error

	// Idle makes the loop call the handler with a batch without records, whose Idle is set, when it
	// has had no records for this time, and again after each such time; [Shard.Batches] yields it.
	// A handler that waits for the clock acts in these calls. A call that fails is repeated like
	// any other. 100 ms to 1 h; 0, the default, is never. With [FanOut] it may come up to 15 s
	// later while there is no subscription.
	Idle time.Duration

	// Position says how far a sink has got that keeps positions itself, such as a database whose
	// transactions hold both the effect of a record and its position. Optional. It is called when a
	// term begins, for the shard and then for its ancestors. ctx ends after 30 s, and when the
	// lease is wanted back. An error, a panic and a position that cannot be one of the shard are
	// retried after a pause and never read as "nowhere".
	//
	// For the shard itself, reading begins after the position that is returned. The zero Position
	// of a sink that knows nothing, and [shard.End], have it begin at the lease's checkpoint. A
	// position behind the checkpoint leaves the checkpoint as it is until handling has passed it;
	// [Options].Expired holds for one whose records have left the stream.
	//
	// An ancestor that the lease shows as read to its end is read again if its position is before
	// that end, and its descendants wait: a sink that was restored from a backup misses nothing.
	// For that the sink has to keep positions of shards that have ended: one that removes them, and
	// is restored, may miss records of their descendants. The zero Position of a shard with an
	// ancestor that the sink knows means the same as [Oldest]: the sink has no record of the shard.
	// If the sink knows no ancestor either, the lease decides: the sink is new, or removes
	// positions of shards that have ended.
	//
	// With [Options].GiveUp the sink has to keep [shard.End] when it handles a batch with
	// [Batch].End: a record that was given up at the end of a shard is not in the sink, and without
	// the end the shard is read again and again.
	Position func(ctx context.Context, stream, shard string) (Position, error)

	// KeepsRecords declares that the handlers use records of a batch after they request the next
	// batch or return. RunShards then refuses [Options].ReuseBuffers, because weir would overwrite
	// these records. Defaults to false.
	KeepsRecords bool
}

// RunShards is [Consumer.Run] with a separate handler for each term.
func (c *Consumer) RunShards(ctx context.Context, h ShardHandlers) error {
	if (h.Open == nil) == (h.Pull == nil) {
		return errors.New("weir: RunShards wants one of ShardHandlers.Open and ShardHandlers.Pull")
	}
	if err := h.check(); err != nil {
		return err
	}
	if h.KeepsRecords && c.opts.ReuseBuffers {
		return errors.New("weir: RunShards refuses Options.ReuseBuffers for handlers that keep records (ShardHandlers.KeepsRecords), because it overwrites them")
	}
	if h.Pull != nil && c.opts.Filter.NotJSON == FailNotJSON {
		return errors.New("weir: RunShards with ShardHandlers.Pull has no failures of records: Options.Filter.NotJSON must be PassNotJSON or DropNotJSON")
	}
	if h.Pull != nil && c.opts.GiveUp.To != nil {
		return errors.New("weir: with ShardHandlers.Pull, and in a loop over Records, no record fails, so none is dead-lettered: leave Options.GiveUp out")
	}
	if c.opts.Parallel.on() {
		return errors.New("weir: RunShards handles a shard's batches one after the other: use Run with Options.Parallel, or leave that out")
	}
	return c.run(ctx, nil, &h)
}

const leastIdle, mostIdle = 100 * time.Millisecond, time.Hour

// check says what is wrong with the options.
func (h *ShardHandlers) check() error {
	if h.Idle != 0 && (h.Idle < leastIdle || h.Idle > mostIdle) {
		return fmt.Errorf("weir: ShardHandlers.Idle %v must be between %v and %v, or 0 for no calls", h.Idle, leastIdle, mostIdle)
	}
	return nil
}

// Shard is a shard for one term, as [ShardHandlers].Pull gets it.
type Shard struct {
	Term
	pull *puller
	term *group.Term
}

// puller hands batches to a function that pulls.
type puller = pull.Puller[*Batch]

// Batches yields the batches of the shard, in order, until the term ends. A yielded batch is not
// done yet: mark progress with [Batch.Done] or [Batch.Checkpoint], which also work for earlier
// batches and from other goroutines. All records are done when Pull returns nil after the batch
// with End. With [Options].ReuseBuffers a batch is valid until the next one is requested, and its
// progress has to be marked before.
//
// When the term ends before the shard does, the last pair has no batch but an error:
// [ErrLeaseLost], [ErrStopping], [ErrStalled], or [ErrHandedOff] when another worker gets the
// lease. Pull should return soon after that. The shard's next owner handles the unfinished records
// again. Batches is not for concurrent use.
func (s *Shard) Batches() iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		for {
			b, some, err := s.pull.Next(func(b *Batch) bool { return b.End })
			if err != nil {
				yield(nil, err)
			}
			if !some || !yield(b, nil) {
				return
			}
		}
	}
}

// Done marks everything before p as done, like [Batch.Done], for functions that do not retain
// finished batches. p must not be after the last yielded record. Done may be called concurrently.
// It returns [ErrLeaseLost] when the shard belongs to another worker now.
func (s *Shard) Done(p Position) error {
	if lost := s.term.Lost(); lost != nil {
		return lost
	}
	if p.IsZero() || p.Compare(s.pull.Yielded()) > 0 && p != s.From {
		return fmt.Errorf("weir: the position %q is not in a batch that was handed over", p)
	}
	s.term.Advance(s.pull.Past(p))
	return nil
}

// Hold reports that the shard's checkpoint is kept in place on purpose from now on, and why, such
// as "by an open window". "" reports that it is not held any more. Hold affects only the reports
// about the shard, of [Consumer.Shards] and, after a while, of the store, so that operators do not
// take it for stuck. A hold ends with the call of Pull that got the Shard; later calls of Hold have
// no effect. Hold may be called concurrently.
func (s *Shard) Hold(why string) { s.pull.Hold(why) }
