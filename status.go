package weir

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/shardrun"
)

// ShardState is the current activity of a held shard, or the reason why it waits. Every wait has a
// limit, or ends with the lease.
type ShardState string

const (
	// ShardStarting: the lease was just taken, and nothing was requested yet.
	ShardStarting ShardState = "starting"
	// ShardAtTip: everything is handled; the next read is due after an idle interval; see
	// Options.IdleInterval.
	ShardAtTip ShardState = "at the tip"
	// ShardPacing: there is more to read, as soon as the service's limits allow.
	ShardPacing ShardState = "pacing"
	// ShardPositioning: the service is asked for an iterator, 20 s at most.
	ShardPositioning ShardState = "positioning"
	// ShardReading: records are asked for, or being received, 20 s at most for the answer or each
	// part of a large one.
	ShardReading ShardState = "reading"
	// ShardAwaitingHandler: records wait for the handler, and no more are read before it has taken
	// them.
	ShardAwaitingHandler ShardState = "waiting for the handler"
	// ShardAwaitingMemory: Options.MaxMemory has no room for the next records. It lasts until other
	// shards' handlers give memory back and the shards that asked before were served. Err says how
	// much is in use.
	ShardAwaitingMemory ShardState = "waiting for memory"
	// ShardBackingOff: a read failed, see Err, and is tried again after 10 s or so at most.
	ShardBackingOff ShardState = "backing off"
	// ShardSubscribing: a subscription is asked for, or the moment when the service allows one.
	// Only with FanOut.
	ShardSubscribing ShardState = "subscribing"
	// ShardSubscribed: records come as they are written. Only with FanOut.
	ShardSubscribed ShardState = "subscribed"
	// ShardGathering: a batch that is not full waits for more records, for Options.BatchWait at
	// most. Reading continues.
	ShardGathering ShardState = "waiting for a full batch"
	// ShardHandling: the handler is at work, for Options.HandlerTimeout at most if that is set; its
	// context ends when the lease is lost.
	ShardHandling ShardState = "in the handler"
	// ShardRetrying: the handler failed, see Err, and is called again after Options.RetryMax at
	// most.
	ShardRetrying ShardState = "waiting to handle again"
	// ShardGivingUp: letters of records that are given up are being put; see [GiveUp]. It counts as
	// handling for Options.HandlerTimeout.
	ShardGivingUp ShardState = "giving records up"
	// ShardSuspected: workers that had the shard died one after the other, see
	// Options.SuspectAfter. Its next record waits before it is handled or given up. It waits for 15
	// min or [GiveUp].Patience at most, or until single records of other shards were tried.
	ShardSuspected ShardState = "suspected of killing workers"
	// ShardOpening: [ShardHandlers] are asked for the term's handler and where it begins.
	ShardOpening ShardState = "opening its handler"
	// ShardClosing: the term is over, and its handler is being closed; see [ShardHandler].
	ShardClosing ShardState = "closing its handler"
	// ShardEnding: the shard was read to its end, and that is being saved with the next beat.
	ShardEnding ShardState = "read to its end"
	// ShardBlocked: the shard has stalled in this process before. It is begun again after a pause
	// of Options.RetryMax at most, and not before an abandoned handler of it has returned; the
	// lease goes back after Options.StallAfter.
	ShardBlocked ShardState = "waiting after a stall"
	// ShardAbandoned: the lease was given up, but the handler ignores that its context has ended.
	// It may belong to another worker.
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
	// With Options.Parallel: Keys is the number of partition keys with unfinished records, Calls
	// the number of keys in the handler, and Span the number of records from the oldest unfinished
	// one on. If this worker dies, at most Span records are handled again. Attempt and Err belong
	// to the oldest record.
	Keys, Calls, Span int
}

// Shards returns how each shard that this consumer holds stands, sorted by stream and shard; none
// when it does not run. It may be called at any time, concurrently with [Consumer.Run].
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

// statusOf returns how the shard of a loop stands.
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
