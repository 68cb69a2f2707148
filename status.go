package weir

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/shardrun"
)

// ShardStatus is the status of one of a consumer's shards at one moment. It is a copy that belongs
// to the caller.
type ShardStatus struct {
	// Stream and Shard name the shard. Epoch is the epoch of its lease: each new owner gets a
	// larger one.
	Stream, Shard string
	Epoch         uint64
	At            Position // every record before it is handled
	Saved         Position // the position in the store, at or before At
	// Reason is what this worker does with the shard, or what the shard waits for. If the handler
	// has work, Reason is about the handler. Otherwise it is about reading. Every wait has a limit,
	// or ends with the lease. Since is when Reason began to apply. Activity is Reason.Activity(),
	// one of six words.
	Activity health.Activity
	Reason   health.Reason
	Since    time.Time
	// Reading is what the reads of the shard do or wait for. Reads continue while the handler
	// works. ReadingSince is when Reading began to apply.
	Reading      health.Reason
	ReadingSince time.Time

	Attempt   int           // failures in a row, of the handler or else of reading; 0 after a success
	Err       error         // the last of these failures, or nil
	Throttled int           // reads that the service throttled, since the lease was taken
	Failed    int           // reads that failed otherwise, since the lease was taken
	Retried   int           // reads that were repeated because the first connection was silent
	Behind    time.Duration // of the last answer; negative if unknown
	Buffered  int           // records that were read and wait for the handler
	// The lags measure how far the shard is behind the tip of the stream now. They are negative if
	// unknown, as before the first answer.
	//
	// ReadLag is the lag in the last answer, plus the time since then. If reads have failed since
	// before the first answer, ReadLag is the time for which they have failed, a lower bound. If
	// records of the first answer have arrived, but not yet its lag, ReadLag is the age of the
	// oldest unhandled record. HandledLag is the age of the oldest record that was read and is not
	// handled, but at least ReadLag. SavedLag is the age of the oldest record whose progress is not
	// saved, but at least HandledLag. The age of a record may be too large by at most the time
	// between the first and the last record of one read.
	ReadLag, HandledLag, SavedLag time.Duration
	// Expired is true if the service refuses the position At because its records have left the
	// stream, and the shard therefore stays at At; see [FailExpired].
	Expired bool
	// Held is the reason why At is kept back on purpose, such as "by an open window"; see
	// [Puller.Hold]. It is "" if nothing holds At. HeldSince is when the hold began, or zero.
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
// contains only shards whose handlers have not returned. The caller owns the slice.
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
		Activity: of.Reason.Activity(), Reason: of.Reason, Since: of.Since, Reading: of.Reading, ReadingSince: r.Since,
		Attempt: of.Attempt, Err: of.Err, Throttled: r.Throttled, Failed: r.Failed, Retried: r.Retried,
		Behind: r.Behind, Buffered: r.Buffered,
		ReadLag: of.Lags.Read, HandledLag: of.Lags.Handled, SavedLag: of.Lags.Saved,
		Expired: of.Expired, Held: of.Held.Why, HeldSince: of.Held.Since.Time(),
		Keys: of.Keys.Keys, Calls: of.Keys.Calls, Span: of.Keys.Records,
	}
}
