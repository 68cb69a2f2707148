package weir

import "time"

// Events are functions that a consumer calls when something happens, for metrics and tests. Nil ones are skipped.
// They are called from weir's own goroutines, several at a time: they must be quick and safe for concurrent use.
type Events struct {
	// LeaseTaken: this worker begins to read a shard.
	LeaseTaken func(LeaseTaken)
	// LeaseEnded: this worker has ended reading a shard, and its handler has returned.
	LeaseEnded func(LeaseEnded)
	// BatchHandled: the handler returned nil for a batch.
	BatchHandled func(BatchHandled)
	// Unpacked: a page held records that the KPL has packed into one, or ones that look like it and are damaged.
	Unpacked func(Unpacked)
	// HandlerFailed: the handler failed; what is not done will be handled again.
	HandlerFailed func(HandlerFailed)
	// ReadFailed: reading a shard failed or was throttled; it will be tried again.
	ReadFailed func(ReadFailed)
	// PositionExpired: records after a shard's checkpoint have left the stream unread, or may have; see [Expired].
	PositionExpired func(PositionExpired)
	// ReadingChanged: with Options.Reading FanOut, a shard is polled from now on because fan-out is not to be had, or fan-out is back.
	ReadingChanged func(ReadingChanged)
	// Stalled: a shard has made no progress for longer than it may, and its lease is given up; see Options.StallAfter and HandlerTimeout.
	// Also a handler that did not finish within Options.StopTimeout; Err is then ErrStopping.
	Stalled func(Stalled)
	// StoreFailed: the store, or the listing of a stream, did not answer as it should; it will be tried again.
	StoreFailed func(StoreFailed)
	// Leading: this worker became the leader (true) or is not any more (false).
	Leading func(bool)
}

// LeaseTaken is what [Events].LeaseTaken gets.
type LeaseTaken struct {
	Stream, Shard string
	Epoch         uint64
	From          Position // where reading resumes
}

// LeaseEnded is what [Events].LeaseEnded gets.
type LeaseEnded struct {
	Stream, Shard string
	Epoch         uint64
	At            Position // what was handled; shard.End when the shard was read to its end
	Reason        string   // "finished", "handed off", "stopped", "stalled", "lost"
}

// BatchHandled is what [Events].BatchHandled gets.
type BatchHandled struct {
	Stream, Shard string
	Records       int
	Bytes         int           // of data
	Behind        time.Duration // see [Batch]
	Took          time.Duration // the handler's last call
	Attempts      int           // 1 when the first call succeeded
}

// Unpacked is what [Events].Unpacked gets, about one page.
type Unpacked struct {
	Stream, Shard string
	Aggregates    int // unpacked
	Records       int // that came out of them
	Dropped       int // by UnpackOwn: their keys belong to other shards
	Damaged       int // looked like aggregates, were none, and were delivered as they are
}

// HandlerFailed is what [Events].HandlerFailed gets.
type HandlerFailed struct {
	Stream, Shard string
	Err           error
	Attempt       int           // from 1
	Next          time.Duration // the pause before the next attempt; 0 if none follows, as all was done
}

// ReadFailed is what [Events].ReadFailed gets.
type ReadFailed struct {
	Stream, Shard string
	Err           error
	Throttled     bool // or a subscription has to wait for the one before it, some seconds, which is normal when a shard changes hands
	Next          time.Duration
}

// PositionExpired is what [Events].PositionExpired gets. With [FailExpired] it is told once a lease, Next is Position, and From and To are zero: nothing
// was skipped, and the shard waits there.
type PositionExpired struct {
	Stream, Shard string
	Position      Position // that expired; everything before it was handled
	Next          Position // where reading goes on
	// What may be lost arrived between From and To. From is zero when the position does not say when it was, To when the service did not.
	From, To time.Time
	Err      error // what the service said; nil when it went on with the oldest record by itself
}

// ReadingChanged is what [Events].ReadingChanged gets.
type ReadingChanged struct {
	Stream, Shard string
	Reading       Reading // from now on
	Err           error   // why it is polled; nil when fan-out is back
}

// Stalled is what [Events].Stalled gets.
type Stalled struct {
	Stream, Shard string
	Epoch         uint64
	Stage         ShardState // what did not get on
	Since         time.Time
	Err           error // the last error of reading or of the handler, if there was one
	// Abandoned: the handler has ignored the end of its context, which was at Since. It goes on, but its lease is given up.
	Abandoned bool
}

// StoreFailed is what [Events].StoreFailed gets.
type StoreFailed struct {
	Op    string // "beat", "view", "apply", "lead", "leave", "list", or "streams" for Options.StreamsFunc
	Err   error
	Since time.Time // when the outage began
}
