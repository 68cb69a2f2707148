package weir

import (
	"context"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/group"
)

// Events are functions that a consumer calls when something happens, for metrics and tests. Nil
// functions are skipped.
//
// Each Run has one goroutine that calls them, and the logger, one after the other, in the order in
// which the events happened. The Time of an event is when it happened, not when the function is
// called. A slow function delays only other events and the log. If the functions do not keep up,
// events are dropped, except changes of state: [LeaseTaken], [LeaseEnded], [Leading],
// [ReadingChanged], [Stalled], [Suspected], [StoreFailed] and [PositionExpired]. Of these, the
// latest of each kind and shard always arrives, and replaces an earlier one that is still waiting.
// [Consumer.Counts] has exact numbers, and how many events were dropped or replaced. A log line
// reports when the dropping begins.
//
// ctx has the values of Run's context. It ends when Run returns. A panic is logged. If a function
// has not returned 5 s after everything else has ended, Run returns without it; see [ErrAbandoned].
type Events struct {
	// LeaseTaken is called when this worker begins to read a shard.
	LeaseTaken func(context.Context, LeaseTaken)
	// LeaseEnded is called when this worker has stopped reading a shard and its handler has
	// returned.
	LeaseEnded func(context.Context, LeaseEnded)
	// Read is called when a read returned records or the end of a shard. Empty reads are not
	// reported.
	Read func(context.Context, Read)
	// BatchBegins is called when the handler is called.
	BatchBegins func(context.Context, BatchBegins)
	// BatchHandled is called when the handler returned nil for a batch, or when a function that
	// pulls batches requests the next one after it completed all records of this one.
	BatchHandled func(context.Context, BatchHandled)
	// CheckpointSaved is called when progress of a shard is durable in the store.
	CheckpointSaved func(context.Context, CheckpointSaved)
	// Unpacked is called when a page held KPL aggregates, or records that look like damaged ones.
	Unpacked func(context.Context, Unpacked)
	// Filtered is called when a page held records that [Options].Filter dropped or could not read.
	Filtered func(context.Context, Filtered)
	// HandlerFailed is called when the handler failed. Records that are not done are handled again.
	HandlerFailed func(context.Context, HandlerFailed)
	// GivenUp is called when [Options].OnFailure gave up records and their dead letters are
	// durable.
	GivenUp func(context.Context, GivenUp)
	// GiveUpHeld is called when records could be given up but are retried instead, because other
	// records fail too, or because many were already given up; see [FailurePolicy].OutageGrace and
	// MaxPerMinute. It is called once per record and reason.
	GiveUpHeld func(context.Context, GiveUpHeld)
	// LettersFailed is called when the dead letters of given-up records could not be put. The shard
	// waits and retries.
	LettersFailed func(context.Context, LettersFailed)
	// Suspected is called when several workers in a row died at the same position of a shard and
	// this worker has the shard now; see Options.OnFailure.SuspectAfter. It is called before the
	// first record of a term, and once more when the record that kills workers is identified.
	Suspected func(context.Context, Suspected)
	// ReadFailed is called when a read of a shard failed or was throttled. weir retries the read.
	ReadFailed func(context.Context, ReadFailed)
	// PositionExpired is called when records after a shard's checkpoint left the stream unread, or
	// may have; see [ExpiredPolicy].
	PositionExpired func(context.Context, PositionExpired)
	// ReadingChanged is called, with Options.Reading FanOut, when a shard falls back to polling
	// because fan-out is not available, and when fan-out is back.
	ReadingChanged func(context.Context, ReadingChanged)
	// Stalled is called when a shard made no progress for too long and its lease is released; see
	// Options.Timing.StallAfter and HandlerTimeout. It is also called when a handler did not finish
	// within Options.Timing.StopTimeout; Err is then ErrStopping.
	Stalled func(context.Context, Stalled)
	// StoreFailed is called when a call of the store, or the listing of a stream, failed. weir
	// retries the call.
	StoreFailed func(context.Context, StoreFailed)
	// Leading is called when this worker becomes the leader or stops being the leader.
	Leading func(context.Context, Leading)
}

// Then returns Events in which each function calls the function of e and then the function of
// second, even if the function of e panics. With it, metrics and the program's own functions can
// observe the same consumer.
func (e Events) Then(second Events) Events {
	return Events{
		LeaseTaken:      then(e.LeaseTaken, second.LeaseTaken),
		LeaseEnded:      then(e.LeaseEnded, second.LeaseEnded),
		Read:            then(e.Read, second.Read),
		BatchBegins:     then(e.BatchBegins, second.BatchBegins),
		BatchHandled:    then(e.BatchHandled, second.BatchHandled),
		CheckpointSaved: then(e.CheckpointSaved, second.CheckpointSaved),
		Unpacked:        then(e.Unpacked, second.Unpacked),
		Filtered:        then(e.Filtered, second.Filtered),
		HandlerFailed:   then(e.HandlerFailed, second.HandlerFailed),
		GivenUp:         then(e.GivenUp, second.GivenUp),
		GiveUpHeld:      then(e.GiveUpHeld, second.GiveUpHeld),
		LettersFailed:   then(e.LettersFailed, second.LettersFailed),
		Suspected:       then(e.Suspected, second.Suspected),
		ReadFailed:      then(e.ReadFailed, second.ReadFailed),
		PositionExpired: then(e.PositionExpired, second.PositionExpired),
		ReadingChanged:  then(e.ReadingChanged, second.ReadingChanged),
		Stalled:         then(e.Stalled, second.Stalled),
		StoreFailed:     then(e.StoreFailed, second.StoreFailed),
		Leading:         then(e.Leading, second.Leading),
	}
}

// then returns a function that calls f and g. Either may be nil. g is called even if f panics, so
// that metrics stay correct when another function fails.
func then[E any](f, g func(context.Context, E)) func(context.Context, E) {
	switch {
	case f == nil:
		return g
	case g == nil:
		return f
	}
	return func(ctx context.Context, event E) {
		defer g(ctx, event)
		f(ctx, event)
	}
}

// LeaseTaken is the argument of [Events].LeaseTaken.
type LeaseTaken struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Epoch         uint64
	From          Position // where reading resumes
}

// LeaseEnded is the argument of [Events].LeaseEnded.
type LeaseEnded struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Epoch         uint64
	At            Position // last handled position; shard.End when the shard was read to its end
	Reason        EndReason
}

// BatchHandled is the argument of [Events].BatchHandled.
type BatchHandled struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Records       int
	Bytes         int           // size of the data
	Behind        time.Duration // see [Batch]
	Took          time.Duration // duration of the handler's last call
	Attempts      int           // 1 when the first call succeeded
}

// Unpacked is the argument of [Events].Unpacked. It describes one page.
type Unpacked struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Aggregates    int // unpacked aggregates
	Records       int // records in these aggregates
	Dropped       int // records dropped by UnpackOwn: their keys belong to other shards
	Damaged       int // records that looked like aggregates but were not, delivered unchanged
}

// Filtered is the argument of [Events].Filtered. It describes one page, or only the beginning of
// the page if the term ended before the rest was filtered.
type Filtered struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Dropped       int // records that match no pattern
	NotJSON       int // records that could not be matched; see [Filter].NotJSON
}

// HandlerFailed is the argument of [Events].HandlerFailed.
type HandlerFailed struct {
	Time          time.Time // when it happened
	Stream, Shard string
	At            Position // everything before this position is done
	// Records is the number of records that will be delivered again, from First to Last. First and
	// Last are sequence numbers as at the end of [Record.ID], with "+2" appended for the second
	// record of an aggregate. When all records were done, and when Open, Position or Pull of
	// [ShardHandlers] failed, Records is 0, and First and Last are "".
	Records     int
	First, Last string
	Err         error // wraps a [PanicError] after a panic
	Attempt     int   // from 1
	// Next is the pause before the next attempt. It is 0 when the records are retried at once in
	// smaller batches, and when there is no next attempt because all are done or given up.
	Next time.Duration
}

// GivenUp is the argument of [Events].GivenUp.
type GivenUp struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Records       int    // number of records that were given up together
	First         string // the ID of the first record
	Reason        deadletter.Reason
	Attempts      int   // handler calls that failed with this record
	Err           error // the last failure
}

// GiveUpHeld is the argument of [Events].GiveUpHeld.
type GiveUpHeld struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Records       int // number of records that could be given up together
	Reason        deadletter.Reason
	Why           string // why they are not given up yet
}

// Suspected is the argument of [Events].Suspected.
type Suspected struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Epoch         uint64   // see [Batch]
	At            Position // the shard's checkpoint when the workers died
	Died          int      // number of workers that died, one after the other
	// Record is the ID of the record that kills workers, or "" while it is unknown.
	Record string
	Alone  int           // workers that died while they handled a single record
	Next   time.Duration // pause before the record is handled again
}

// LettersFailed is the argument of [Events].LettersFailed.
type LettersFailed struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Records       int // number of records that the dead letters are for
	Err           error
	Attempt       int // from 1
	Next          time.Duration
}

// ReadFailed is the argument of [Events].ReadFailed.
type ReadFailed struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Err           error
	// Throttled is also true when a subscription waits some seconds for the previous one to end,
	// which is normal when a shard changes hands.
	Throttled bool
	Next      time.Duration
}

// PositionExpired is the argument of [Events].PositionExpired. With [FailExpired] it is reported
// once per lease, Next equals Position, and From and To are zero: nothing was skipped, and the
// shard waits at Position.
type PositionExpired struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Position      Position // the expired position; everything before it was handled
	Next          Position // where reading continues
	// The records that may be lost arrived between From and To. From is zero when the position has
	// no time, To when the service returned none.
	From, To time.Time
	Err      error // the service's error; nil if it skipped to the oldest record itself
}

// ReadingChanged is the argument of [Events].ReadingChanged.
type ReadingChanged struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Reading       Reading // how the shard is read from now on
	Err           error   // why the shard is polled; nil when fan-out is back
}

// Stalled is the argument of [Events].Stalled.
type Stalled struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Epoch         uint64
	Stage         ShardState // the stage that made no progress
	Since         time.Time
	Err           error // the last error of reading or of the handler, if any
	// Abandoned is set if the handler ignored the end of its context, which ended at Since. The
	// handler still runs, but its lease is released.
	Abandoned bool
}

// StoreFailed is the argument of [Events].StoreFailed.
type StoreFailed struct {
	Time  time.Time // when it happened
	Op    StoreOp
	Err   error
	Since time.Time // when the outage began
}

// Read is the argument of [Events].Read. It describes a page, or a part of a large one.
type Read struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Records       int // number of records as read: an aggregate counts as one
	Bytes         int // size of data and keys
	// Took is the time from the call until this part had arrived, including all parts before it. It
	// is 0 with fan-out.
	Took   time.Duration
	Behind time.Duration // see [Batch]
	End    bool          // whether the shard ends with this read
}

// BatchBegins is the argument of [Events].BatchBegins.
type BatchBegins struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Records       int // number of records that are not done
	Attempt       int // see [Batch]
}

// CheckpointSaved is the argument of [Events].CheckpointSaved.
type CheckpointSaved struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Epoch         uint64
	At            Position // everything before this position is done
	// Took is the time that the heartbeat with this checkpoint took until the store answered.
	// Shards that save together have the same value.
	Took time.Duration
}

// Leading is the argument of [Events].Leading.
type Leading struct {
	Time  time.Time // when it happened
	Leads bool      // whether this worker leads from now on
	Term  uint64    // the number of changes of the leader
}

// EndReason is why a term ended.
type EndReason uint8

// The reasons why a term ends.
const (
	// EndLost says that the lease was moved, or was no longer valid.
	EndLost      = EndReason(group.EndLost)
	EndFinished  = EndReason(group.EndFinished)  // the shard was read to its end
	EndHandedOff = EndReason(group.EndHandedOff) // another worker gets the lease
	EndStopped   = EndReason(group.EndStopped)   // Run stops
	EndStalled   = EndReason(group.EndStalled)   // the shard made no progress here
)

// String returns "lost", "finished", "handed off", "stopped" or "stalled".
func (r EndReason) String() string { return group.EndReason(r).String() }

// StoreOp is an operation that a worker requested from its store, or from the service.
type StoreOp string

// The operations that [StoreFailed] reports.
const (
	OpBeat    StoreOp = "beat"
	OpView    StoreOp = "view"
	OpApply   StoreOp = "apply"
	OpLead    StoreOp = "lead"
	OpLeave   StoreOp = "leave"
	OpList    StoreOp = "list"    // listing the shards of a stream
	OpStreams StoreOp = "streams" // Options.DiscoverStreams
)
