package weir

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/pull"
)

// Term describes one period in which this worker holds the lease of one shard. It begins when the
// worker takes the lease. It ends when the lease is lost, handed off or given back, and when the
// shard has been read to its end.
type Term struct {
	Stream string // the stream's name
	Shard  string // the shard's ID
	Epoch  uint64 // see [Batch]
	// From is the position at which reading begins: the result of [ShardHandlers].Position, or the
	// lease's checkpoint.
	From Position
}

// ShardHandler handles one shard for one term.
type ShardHandler interface {
	Handler
	// Close is called once, at the end of the term, after the last call of Handle has returned.
	// Another worker gets the lease only after Close, unless the lease is already lost. ctx is the
	// same as for Handle, and may have ended. Records that are not done are handled again by the
	// next owner.
	Close(ctx context.Context, why EndReason)
}

// ShardHandlers make a handler for each term, for handlers that keep state for each shard. Open or
// Pull is required. weir calls the functions from the goroutine of the shard, so calls for
// different shards run concurrently. Their contexts have the values of Run's context. After an
// error or a panic, weir pauses and calls the function again. [Stop] ends Run.
type ShardHandlers struct {
	// Open makes the handler of a term, before weir reads any record. ctx is the same as for
	// Handle.
	Open func(ctx context.Context, t Term) (ShardHandler, error)

	// Pull is for handlers with their own loop. weir calls the function when a term begins. The
	// function ranges over [Shard.Batches] and returns nil after the end of the shard. If it
	// returns an error, or returns nil too early, weir pauses, calls it again, and reads the
	// records that are not done from the stream again.
	Pull func(ctx context.Context, s *Shard) error

	// Idle makes weir call a handler that has had no records for this time, and again after each
	// further such time. The batch of such a call has no records, and its field Idle is true;
	// [Shard.Batches] yields it, too. A handler that has to act at a certain time can do so in
	// these calls. If a call fails, weir repeats it. 100 ms to 1 h; 0, the default, is never. With
	// [FanOut], the call may be up to 15 s late while there is no subscription.
	Idle time.Duration

	// Position returns the position of a sink that keeps positions itself, such as a database whose
	// transactions hold both the effect of a record and its position. It is optional. weir calls it
	// when a term begins, for the shard and then for its ancestors. ctx ends after 30 s, and when
	// another worker is to get the lease. After an error, a panic, or a position that cannot be one
	// of the shard, weir pauses and asks again. weir never treats a failure as the zero Position.
	//
	// For the shard itself, reading begins after the returned position. If the sink returns the
	// zero Position, because it has no record of the shard, or [shard.End], reading begins at the
	// lease's checkpoint. If the position is before the checkpoint, the checkpoint stays in place
	// until handling has passed it. If the records after the position have left the stream,
	// [Options].Expired applies.
	//
	// For an ancestor whose lease says that it was read to its end, weir compares the sink's
	// position with that end. If the position is before the end, weir reads the ancestor again, and
	// the descendants wait. So a sink that was restored from a backup misses nothing, if it keeps
	// the positions of shards that have ended. A sink that removes them may miss records of their
	// descendants after it was restored.
	//
	// If the sink returns the zero Position for a shard, and another position for one of its
	// ancestors, weir reads the shard from its beginning. If the sink knows none of the ancestors
	// either, the lease decides: the sink is new, or removes the positions of shards that have
	// ended.
	//
	// With [Options].OnFailure, the sink has to keep [shard.End] when it handles a batch with
	// [Batch].End. A record that was dead-lettered at the end of a shard is not in the sink, so
	// without that position weir would read the shard again and again.
	Position func(ctx context.Context, stream, shard string) (Position, error)

	// KeepsRecords declares that handlers use the records of a batch after they have returned or
	// requested the next batch. RunShards then refuses [Options].ReuseBuffers, which would
	// overwrite the records. Defaults to false.
	KeepsRecords bool
}

// RunShards does what [Consumer.Run] does, with a separate handler for each term.
func (c *Consumer) RunShards(ctx context.Context, h ShardHandlers) error {
	if (h.Open == nil) == (h.Pull == nil) {
		return badOption("ShardHandlers.Open", "or ShardHandlers.Pull must be set, and not both")
	}
	if err := h.check(); err != nil {
		return err
	}
	if h.KeepsRecords && c.opts.ReuseBuffers {
		return badOption("Options.ReuseBuffers", "cannot be combined with handlers that keep records (ShardHandlers.KeepsRecords), because it overwrites them")
	}
	if h.Pull != nil && c.opts.Filter.NotJSON == FailNotJSON {
		return badOption("Options.Filter.NotJSON", "must be PassNotJSON or DropNotJSON with ShardHandlers.Pull, where no record fails")
	}
	if h.Pull != nil && c.opts.OnFailure.Destination != nil {
		return badOption("Options.OnFailure", "cannot be combined with ShardHandlers.Pull or a loop over Records, where no record fails: leave Options.OnFailure out")
	}
	if c.opts.Concurrency.on() {
		return badOption("Options.Concurrency", "cannot be combined with RunShards, which handles the batches of a shard one after the other: use Run, or leave Options.Concurrency out")
	}
	return c.run(ctx, nil, &h)
}

const leastIdle, mostIdle = 100 * time.Millisecond, time.Hour

// check says what is wrong with the options.
func (h *ShardHandlers) check() error {
	if h.Idle != 0 && (h.Idle < leastIdle || h.Idle > mostIdle) {
		return badOption("ShardHandlers.Idle", "%v must be between %v and %v, or 0 for no calls", h.Idle, leastIdle, mostIdle)
	}
	return nil
}

// Shard is the argument of [ShardHandlers].Pull: a shard for one term.
type Shard struct {
	Term
	pull *puller
	term *group.Term
}

// puller hands batches to a function that pulls.
type puller = pull.Puller[*Batch]

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

// Done marks everything before p as done. It is for functions that do not keep the batches that are
// in progress. p must not be after the last yielded record. Done may be called concurrently. It
// returns [ErrLeaseLost] if the shard belongs to another worker now.
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

// Hold tells operators that the function keeps the shard's checkpoint in place on purpose, and why,
// for example "by an open window". An empty string ends the hold. Hold changes only reports: those
// of [Consumer.Shards] at once, and those in the store after 30 s. A hold also ends when the call
// of Pull that got the Shard returns. Later calls of Hold have no effect. Hold may be called
// concurrently.
func (s *Shard) Hold(why string) { s.pull.Hold(why) }
