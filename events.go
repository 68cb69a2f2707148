package weir

import (
	"context"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/group"
)

// Events are functions that a consumer calls when something happens, for metrics and tests. Nil
// ones are skipped.
//
// They are called one after the other, by a goroutine that each Run has for them and for the
// logger, in the order in which things happened; the Time of an event is when it did. What they do
// holds up nothing but each other. When they do not keep up, a change of state ([LeaseTaken],
// [LeaseEnded], [Leading], [ReadingChanged], [Stalled], [Suspected], [StoreFailed],
// [PositionExpired]) still arrives, unless a later one of the same kind and shard takes its place:
// what arrives is the latest. Other events are dropped. [Consumer.Counts] has exact numbers, and
// how many events did not arrive; the log tells when that begins.
//
// ctx has the values of Run's context. It ends when Run returns. A panic is logged. A function that
// has not returned 5 s after everything else has ended is left behind, see [ErrAbandoned].
type Events struct {
	// LeaseTaken: this worker begins to read a shard.
	LeaseTaken func(context.Context, LeaseTaken)
	// LeaseEnded: this worker has ended reading a shard, and its handler has returned.
	LeaseEnded func(context.Context, LeaseEnded)
	// Read: records have come, or the end of a shard, and are to be handled. What brings nothing is
	// not told.
	Read func(context.Context, Read)
	// BatchBegins: the handler is called.
	BatchBegins func(context.Context, BatchBegins)
	// BatchHandled: the handler returned nil for a batch, or a function that pulls asked for the
	// next batch when all of this one was done.
	BatchHandled func(context.Context, BatchHandled)
	// CheckpointSaved: progress of a shard is durable in the store.
	CheckpointSaved func(context.Context, CheckpointSaved)
	// Unpacked: a page held records that the KPL has packed into one, or ones that look like it and
	// are damaged.
	Unpacked func(context.Context, Unpacked)
	// Filtered: a page held records that [Options].Filter dropped, or that it could not read.
	Filtered func(context.Context, Filtered)
	// HandlerFailed: the handler failed; what is not done will be handled again.
	HandlerFailed func(context.Context, HandlerFailed)
	// GivenUp: records were given up by [Options].GiveUp, and their letters are durable.
	GivenUp func(context.Context, GivenUp)
	// GiveUpHeld: records could be given up, but are handled again instead, because other records
	// fail too or many were given up already; see [GiveUp].Patience and PerMinute. It is told once
	// for a record and reason.
	GiveUpHeld func(context.Context, GiveUpHeld)
	// LettersFailed: the letters of records that are given up could not be put; it will be tried
	// again, and the shard waits.
	LettersFailed func(context.Context, LettersFailed)
	// Suspected: workers that had a shard died one after the other at one position, and this one
	// has it now; see Options.SuspectAfter. Told before a term's first record, and once more when
	// it is known which record kills.
	Suspected func(context.Context, Suspected)
	// ReadFailed: reading a shard failed or was throttled; it will be tried again.
	ReadFailed func(context.Context, ReadFailed)
	// PositionExpired: records after a shard's checkpoint have left the stream unread, or may have;
	// see [ExpiredPolicy].
	PositionExpired func(context.Context, PositionExpired)
	// ReadingChanged: with Options.Reading FanOut, a shard is polled from now on because fan-out is
	// not available, or fan-out is back.
	ReadingChanged func(context.Context, ReadingChanged)
	// Stalled: a shard has made no progress for longer than it may, and its lease is given up; see
	// Options.StallAfter and HandlerTimeout. Also a handler that did not finish within
	// Options.StopTimeout; Err is then ErrStopping.
	Stalled func(context.Context, Stalled)
	// StoreFailed: the store, or the listing of a stream, did not answer as it should; it will be
	// tried again.
	StoreFailed func(context.Context, StoreFailed)
	// Leading: this worker became the leader or is not any more.
	Leading func(context.Context, Leading)
}

// Then returns functions that call those of e, then those of second, also if one of e panics: so
// several that count and the program's own can see the same consumer.
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

// then returns a function that calls f and g, of which either may be nil. g is called even if f
// panics: what counts must not depend on what others do.
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

// LeaseTaken is what [Events].LeaseTaken gets.
type LeaseTaken struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Epoch         uint64
	From          Position // where reading resumes
}

// LeaseEnded is what [Events].LeaseEnded gets.
type LeaseEnded struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Epoch         uint64
	At            Position // what was handled; shard.End when the shard was read to its end
	Reason        EndReason
}

// BatchHandled is what [Events].BatchHandled gets.
type BatchHandled struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Records       int
	Bytes         int           // of data
	Behind        time.Duration // see [Batch]
	Took          time.Duration // the handler's last call
	Attempts      int           // 1 when the first call succeeded
}

// Unpacked is what [Events].Unpacked gets, about one page.
type Unpacked struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Aggregates    int // unpacked
	Records       int // that came out of them
	Dropped       int // by UnpackOwn: their keys belong to other shards
	Damaged       int // looked like aggregates, were none, and were delivered as they are
}

// Filtered is what [Events].Filtered gets, about one page, or the part of it that was begun.
type Filtered struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Dropped       int // that match no pattern
	NotJSON       int // of which that cannot be told; see [Filter].NotJSON for what became of them
}

// HandlerFailed is what [Events].HandlerFailed gets.
type HandlerFailed struct {
	Time          time.Time // when it happened
	Stream, Shard string
	At            Position // everything before it is done
	// Records will be handed over again, from First to Last: sequence numbers as [Record.ID] ends
	// with, with "+2" after it for the second record of an aggregate. 0 and "" when all was done,
	// and when Open, Position or Pull of [ShardHandlers] failed.
	Records     int
	First, Last string
	Err         error // wraps a [PanicError] after a panic
	Attempt     int   // from 1
	// Next is the pause before the next attempt. 0 when it follows at once, in parts, and when
	// there is none: because all was done, or is given up.
	Next time.Duration
}

// GivenUp is what [Events].GivenUp gets.
type GivenUp struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Records       int    // that were given up as one
	First         string // the ID of the first
	Reason        deadletter.Reason
	Attempts      int   // calls of the handler that failed at it
	Err           error // the last failure
}

// GiveUpHeld is what [Events].GiveUpHeld gets.
type GiveUpHeld struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Records       int // that could be given up as one
	Reason        deadletter.Reason
	Why           string // it is not done yet
}

// Suspected is what [Events].Suspected gets.
type Suspected struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Epoch         uint64   // see [Batch]
	At            Position // of the shard when they died
	Died          int      // workers, one after the other
	// Record is the ID of the record that kills, "" while that is not known.
	Record string
	Alone  int           // workers that died while they handled one record by itself
	Next   time.Duration // until it is handled again
}

// LettersFailed is what [Events].LettersFailed gets.
type LettersFailed struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Records       int // whose letters they are
	Err           error
	Attempt       int // from 1
	Next          time.Duration
}

// ReadFailed is what [Events].ReadFailed gets.
type ReadFailed struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Err           error
	// or a subscription has to wait for the one before it, some seconds, which is normal when a
	// shard changes hands
	Throttled bool
	Next      time.Duration
}

// PositionExpired is what [Events].PositionExpired gets. With [FailExpired] it is told once a
// lease, Next is Position, and From and To are zero: nothing was skipped, and the shard waits
// there.
type PositionExpired struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Position      Position // that expired; everything before it was handled
	Next          Position // where reading goes on
	// What may be lost arrived between From and To. From is zero when the position does not say
	// when it was, To when the service did not.
	From, To time.Time
	Err      error // what the service said; nil when it went on with the oldest record by itself
}

// ReadingChanged is what [Events].ReadingChanged gets.
type ReadingChanged struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Reading       Reading // from now on
	Err           error   // why it is polled; nil when fan-out is back
}

// Stalled is what [Events].Stalled gets.
type Stalled struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Epoch         uint64
	Stage         ShardState // what did not get on
	Since         time.Time
	Err           error // the last error of reading or of the handler, if there was one
	// Abandoned: the handler has ignored the end of its context, which was at Since. It goes on,
	// but its lease is given up.
	Abandoned bool
}

// StoreFailed is what [Events].StoreFailed gets.
type StoreFailed struct {
	Time  time.Time // when it happened
	Op    StoreOp
	Err   error
	Since time.Time // when the outage began
}

// Read is what [Events].Read gets, about a page, or a part of a large one.
type Read struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Records       int // as read: an aggregate counts as one
	Bytes         int // of data and keys
	// from the call until this was there, all the parts before it included; 0 by fan-out
	Took   time.Duration
	Behind time.Duration // see [Batch]
	End    bool          // the shard has ended with it
}

// BatchBegins is what [Events].BatchBegins gets.
type BatchBegins struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Records       int // that are not done
	Attempt       int // see [Batch]
}

// CheckpointSaved is what [Events].CheckpointSaved gets.
type CheckpointSaved struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Epoch         uint64
	At            Position // everything before is done
	// the beat that it came with, until the store had answered; what shards save together takes as
	// long for each
	Took time.Duration
}

// Leading is what [Events].Leading gets.
type Leading struct {
	Time  time.Time // when it happened
	Leads bool      // from now on
	Term  uint64    // of leading: the number of changes of the leader
}

// EndReason is why a term ended.
type EndReason uint8

// The reasons why a term ends.
const (
	// the lease was moved, or could not be trusted any more
	EndLost      = EndReason(group.EndLost)
	EndFinished  = EndReason(group.EndFinished)  // the shard was read to its end
	EndHandedOff = EndReason(group.EndHandedOff) // another worker is to have the lease
	EndStopped   = EndReason(group.EndStopped)   // Run stops
	EndStalled   = EndReason(group.EndStalled)   // the shard made no progress here
)

// String returns "lost", "finished", "handed off", "stopped" or "stalled".
func (r EndReason) String() string { return group.EndReason(r).String() }

// StoreOp is what a worker asked of its store, or of the service for the application.
type StoreOp string

// The operations that [StoreFailed] tells of.
const (
	OpBeat    StoreOp = "beat"
	OpView    StoreOp = "view"
	OpApply   StoreOp = "apply"
	OpLead    StoreOp = "lead"
	OpLeave   StoreOp = "leave"
	OpList    StoreOp = "list"    // of a stream's shards
	OpStreams StoreOp = "streams" // Options.StreamsFunc
)
