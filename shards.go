package weir

import (
	"context"
	"time"

	"github.com/weir-go/weir/event"
)

// Term describes one period in which this worker holds the lease of one shard. It begins when the
// worker takes the lease. It ends when the lease is lost, handed off or given back, and when the
// shard has been read to its end.
type Term struct {
	Stream string // the stream's name
	Shard  string // the shard's ID
	Epoch  uint64 // see [Batch]
	// From is the position at which reading begins: the position of the sink, or the lease's
	// checkpoint.
	From Position
}

// ShardHandler handles one shard for one term.
type ShardHandler interface {
	Handler
	// Close is called once, at the end of the term, after the last call of Handle has returned.
	// Another worker gets the lease only after Close, unless the lease is lost or weir has stopped
	// waiting for the handler. ctx is the same as for Handle, and may have ended. Records that are
	// not done are handled again by the next owner.
	Close(ctx context.Context, why event.EndReason)
}

// ShardHandlers make a handler for each term, for handlers that keep state for each shard. Open is
// required. A handler with its own loop is a [PullHandler] instead. weir calls the functions from
// the goroutine of the shard, so calls for different shards run concurrently. Their contexts have
// the values of Run's context. After an error or a panic, weir pauses and calls the function again.
// [Stop] ends Run.
type ShardHandlers struct {
	// Open makes the handler of a term, before weir reads any record. ctx is the same as for
	// Handle. Required.
	Open func(ctx context.Context, t Term) (ShardHandler, error)

	// Idle makes weir call a handler that has had no records for this time, and again after each
	// further such time. The batch of such a call has no records, and its field Idle is true. If a
	// call fails, weir repeats it. 100 ms to 1 h; 0, the default, is never. With [FanOut], the call
	// may be up to 15 s late while there is no subscription.
	Idle time.Duration

	// Position returns the position of a sink that keeps positions itself, such as a database whose
	// transactions hold both the effect of a record and its position. It is optional. weir calls it
	// when a term begins, for the shard and then for its ancestors. ctx ends after 30 s, and when
	// another worker is to get the lease. After an error, a panic, or a position that cannot be in
	// the shard, weir pauses and calls Position again. weir never treats a failure as the zero
	// Position.
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

	// Partitions divides the partition keys of a shard into this number of partitions, 2 to 1,024,
	// which weir handles at the same time. [shard.Partition] says to which partition a key belongs.
	// Each batch has records of one partition, in the order of the shard. At most one batch of a
	// partition is handled at a time, so the order within each key is kept. With 0, the default,
	// and with 1, weir handles one batch of a shard after the other.
	//
	// [Options].Concurrency applies to partitions as it does to keys, and may be left out: Keys
	// then defaults to Partitions. The last batch of a shard has no records, and comes when all
	// partitions are done. Several goroutines call the handler of a term.
	//
	// A sink that keeps positions itself keeps one for each partition, and one for the shard, which
	// its Position returns: the position before which it has the records of all partitions.
	// [Batch].DoneBefore says how far that position may move. Package sink does all of this.
	Partitions int

	// KeepsRecords declares that handlers use the records of a batch after they have returned.
	// RunShards then refuses [Options].ReuseBuffers, which would overwrite the records. Defaults to
	// false.
	KeepsRecords bool
}

// RunShards does what [Consumer.Run] does, with a separate handler for each term.
//
// RunShards returns an [OptionError] before it reads anything if Open is nil, if Idle or Partitions
// is out of its range, with [Options].Concurrency but without Partitions, and with
// Options.ReuseBuffers if the handlers keep records or have partitions.
func (c *Consumer) RunShards(ctx context.Context, h ShardHandlers) error {
	t := termHandlers{of: "ShardHandlers", open: h.Open, idle: h.Idle, position: h.Position, keeps: h.KeepsRecords, partitions: h.Partitions}
	if err := t.check(&c.opts); err != nil {
		return err
	}
	return c.run(ctx, nil, &t)
}

// termHandlers make a handler for each term. They are the common form of [ShardHandlers] and
// [PullHandler]: either open or pull is set.
type termHandlers struct {
	of       string // the type that the caller passed, for errors
	open     func(ctx context.Context, t Term) (ShardHandler, error)
	pull     func(ctx context.Context, p *Puller) error
	idle     time.Duration
	position func(ctx context.Context, stream, shard string) (Position, error)
	keeps    bool // handlers use records after they have returned
	// partitions is the number of partitions of a shard. check sets it to 0 for one partition.
	partitions int
}

const (
	leastIdle, mostIdle = 100 * time.Millisecond, time.Hour
	mostPartitions      = 1024
)

// check returns an error for invalid fields, and for options that the handlers cannot be combined
// with.
func (h *termHandlers) check(o *Options) error {
	switch {
	case h.open == nil && h.pull == nil && h.of == "ShardHandlers":
		return badOption("ShardHandlers.Open", "is nil: set the function that makes the handler of a shard")
	case h.open == nil && h.pull == nil:
		return badOption("PullHandler.Pull", "is nil: set the function that handles the batches of a shard")
	case h.idle != 0 && (h.idle < leastIdle || h.idle > mostIdle):
		return badOption(h.of+".Idle", "%v must be between %v and %v, or 0 for no calls", h.idle, leastIdle, mostIdle)
	case h.keeps && o.ReuseBuffers:
		return badOption("Options.ReuseBuffers", "cannot be combined with %s.KeepsRecords, because it overwrites the records that the handlers keep: leave Options.ReuseBuffers out", h.of)
	case h.partitions < 0 || h.partitions > mostPartitions:
		return badOption("ShardHandlers.Partitions", "%d must be between 2 and %d, or 0 for one batch after the other", h.partitions, mostPartitions)
	case h.partitions > 1 && h.idle != 0:
		return badOption("ShardHandlers.Idle", "cannot be combined with ShardHandlers.Partitions, because an idle call is for the whole shard: leave one of them out")
	case h.partitions > 1 && o.ReuseBuffers:
		return badOption("Options.ReuseBuffers", "cannot be combined with ShardHandlers.Partitions: a record may wait for its partition after its buffer is reused")
	case h.partitions > 1 && o.Batching.MaxWait > 0:
		return badOption("Options.Batching.MaxWait", "cannot be combined with ShardHandlers.Partitions: leave Options.Batching.MaxWait out")
	case o.Concurrency.on() && h.partitions <= 1:
		return badOption("Options.Concurrency", "cannot be combined with RunShards without ShardHandlers.Partitions, or with RunPull and Records, which handle the batches of a shard one after the other: use Run, or leave Options.Concurrency out")
	case h.partitions == 1:
		h.partitions = 0
		return nil
	case h.pull == nil:
		return nil
	case o.Filter.NotJSON == FailNotJSON:
		return badOption("Options.Filter.NotJSON", "must be PassNotJSON or DropNotJSON with RunPull and Records, where no record fails")
	case o.OnFailure.Destination != nil:
		return badOption("Options.OnFailure", "cannot be combined with RunPull and Records, where no record fails: leave Options.OnFailure out")
	}
	return nil
}
