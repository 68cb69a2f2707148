package weir

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/shardrun"
)

// ShardState is the current activity of a shard that this worker holds, or the reason why it waits.
// Every wait has a limit, or ends with the lease.
type ShardState string

const (
	// ShardStarting: the lease was just taken, and no records were requested yet.
	ShardStarting ShardState = "starting"
	// ShardAtTip: all records are handled. The next read follows after
	// Options.Polling.IdleInterval.
	ShardAtTip ShardState = "at the tip"
	// ShardPacing: there are more records, and the next read waits for the service's limits.
	ShardPacing ShardState = "pacing"
	// ShardPositioning: an iterator is requested, for 20 s at most.
	ShardPositioning ShardState = "positioning"
	// ShardReading: records are requested or received. Each part of an answer takes 20 s at most.
	ShardReading ShardState = "reading"
	// ShardAwaitingHandler: records wait for the handler, and weir reads no more until it takes
	// them.
	ShardAwaitingHandler ShardState = "waiting for the handler"
	// ShardAwaitingMemory: Options.MaxMemory has no room for the next records. The shard waits
	// until handlers of other shards give memory back and shards that asked earlier have got
	// theirs. Err says how much memory is in use.
	ShardAwaitingMemory ShardState = "waiting for memory"
	// ShardBackingOff: a read failed with Err. weir tries again after about 10 s at most.
	ShardBackingOff ShardState = "backing off"
	// ShardSubscribing: a subscription is requested, or weir waits until the service allows one.
	// Only with FanOut.
	ShardSubscribing ShardState = "subscribing"
	// ShardSubscribed: the service pushes new records as they are written. Only with FanOut.
	ShardSubscribed ShardState = "subscribed"
	// ShardGathering: a batch that is not full waits for more records, for Options.Batching.MaxWait
	// at most. Reading continues.
	ShardGathering ShardState = "waiting for a full batch"
	// ShardHandling: the handler runs, for Options.Timing.HandlerTimeout at most if that is set.
	// Its context ends when the lease is lost.
	ShardHandling ShardState = "in the handler"
	// ShardRetrying: the handler failed with Err. weir calls it again after
	// Options.Retry.MaxBackoff at most.
	ShardRetrying ShardState = "waiting to handle again"
	// ShardGivingUp: dead letters are being stored; see [FailurePolicy]. This counts as handling
	// for Options.Timing.HandlerTimeout.
	ShardGivingUp ShardState = "giving records up"
	// ShardSuspected: workers that had the shard died one after the other; see
	// Options.OnFailure.SuspectAfter. The next record waits before it is handled or given up: for
	// 15 min or [FailurePolicy].OutageGrace at most, or until this worker has tried single records
	// of other shards.
	ShardSuspected ShardState = "suspected of killing workers"
	// ShardOpening: [ShardHandlers] make the term's handler, or look for the position of the sink.
	ShardOpening ShardState = "opening its handler"
	// ShardClosing: the term is over, and ShardHandler.Close runs.
	ShardClosing ShardState = "closing its handler"
	// ShardEnding: the shard was handled to its end, and the next heartbeat saves that.
	ShardEnding ShardState = "read to its end"
	// ShardBlocked: the shard has stalled in this process before. weir begins it again after a
	// pause of Options.Retry.MaxBackoff at most, but not before an abandoned handler of the shard
	// has returned. After Options.Timing.StallAfter it releases the lease.
	ShardBlocked ShardState = "waiting after a stall"
	// ShardAbandoned: the handler ignores the end of its context, so weir has released the lease
	// without waiting for it. The shard may belong to another worker.
	ShardAbandoned ShardState = "abandoned"
)

// ShardStatus is the status of one of a consumer's shards.
type ShardStatus struct {
	Stream, Shard string
	Epoch         uint64
	At            Position   // every record before it is handled
	Saved         Position   // the position in the store, at or before At
	State         ShardState // of the handler if it has work, otherwise of reading
	Since         time.Time  // when State began
	Reading       ShardState // of reading, which continues while the handler works
	ReadingSince  time.Time
	Attempt       int           // failures in a row, of the handler or else of reading; 0 after a success
	Err           error         // the last of these failures, or nil
	Throttled     int           // reads that the service throttled, since the lease was taken
	Failed        int           // reads that failed otherwise, since the lease was taken
	Retried       int           // reads that were repeated because the first connection was silent
	Behind        time.Duration // of the last answer; negative if unknown
	Buffered      int           // records that were read and wait for the handler
	// The lags measure how far the shard is behind the tip of the stream now. They are negative if
	// unknown, as before the first answer. ReadLag is the lag in the last answer, plus the time
	// since then. If reads fail before the first answer, it is the time for which they have failed,
	// a lower bound. HandledLag is the age of the oldest record that was read and is not handled,
	// and SavedLag the age of the oldest record whose progress is not saved. Both are too large by
	// at most the time between the first and the last record of one page. ReadLag is the smallest
	// of the three, and SavedLag the largest.
	ReadLag, HandledLag, SavedLag time.Duration
	// Expired is true if the service refuses At, whose records have left the stream, and the shard
	// stays there; see [FailExpired].
	Expired bool
	// Held is the reason why At is kept back on purpose, such as "by an open window"; see
	// [Shard.Hold].
	Held      string
	HeldSince time.Time
	// With Options.Concurrency: Keys is the number of partition keys with unfinished records, Calls
	// the number of keys in the handler, and Span the number of records from the oldest unfinished
	// one on. If this worker dies, at most Span records are handled again. Attempt and Err belong
	// to the oldest record.
	Keys, Calls, Span int
}

// Shards returns the status of each shard that this consumer holds, sorted by stream and shard. It
// may be called at any time, concurrently with [Consumer.Run]. While Run does not run, the result
// is empty.
func (c *Consumer) Shards() []ShardStatus {
	loops := c.runs.Loops()
	all := make([]ShardStatus, 0, len(loops))
	for _, l := range loops {
		all = append(all, statusOf(l))
	}
	slices.SortFunc(all, func(a, b ShardStatus) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Epoch, b.Epoch))
	})
	return all
}

// statusOf returns the status of the shard of a loop.
func statusOf(l *shardrun.Loop) ShardStatus {
	key, of := l.Key(), l.Status()
	r := &of.Source
	return ShardStatus{
		Stream: key.Stream, Shard: key.Shard, Epoch: l.Term().Lease.Epoch, At: of.At, Saved: of.Saved,
		State: ShardState(of.State), Since: of.Since, Reading: ShardState(of.Reading), ReadingSince: r.Since,
		Attempt: of.Attempt, Err: of.Err, Throttled: r.Throttled, Failed: r.Failed, Retried: r.Retried,
		Behind: r.Behind, Buffered: r.Buffered,
		ReadLag: of.Lags.Read, HandledLag: of.Lags.Handled, SavedLag: of.Lags.Saved,
		Expired: of.Expired, Held: of.Held.Why, HeldSince: of.Held.Since.Time(),
		Keys: of.Keys.Keys, Calls: of.Keys.Calls, Span: of.Keys.Records,
	}
}
