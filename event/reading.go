package event

import (
	"time"

	"github.com/weir-go/weir/shard"
)

// Read reports a read that returned records or the end of a shard. A large answer arrives in parts,
// and each part is reported with its own event. Empty reads are not reported.
type Read struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Records       int // number of records as read: an aggregate counts as one
	Bytes         int // size of data and keys
	// Took is the time from the call until this part had arrived, including all parts before it. It
	// is 0 with fan-out.
	Took   time.Duration
	Behind time.Duration // see weir.Batch
	End    bool          // whether the shard ends with this read
}

// ReadFailed reports that a read of a shard failed or was throttled. weir retries the read.
type ReadFailed struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Err           error
	// Throttled is also true when a subscription waits some seconds for the previous one to end,
	// which is normal when a shard changes hands.
	Throttled bool
	Next      time.Duration // pause before the next attempt
}

// PositionExpired reports that records after a shard's checkpoint left the stream unread, or may
// have; see weir.ExpiredPolicy. With weir.FailExpired it is reported once per lease, Next equals
// Position, and From and To are zero: nothing was skipped, and the shard waits at Position. It is a
// change of state.
type PositionExpired struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Position      shard.Position // the expired position; everything before it was handled
	Next          shard.Position // where reading continues
	// The records that may be lost arrived between From and To. From is zero if the position has no
	// time. To is zero if the service returned no time.
	From, To time.Time
	Err      error // the service's error; nil if it skipped to the oldest record itself
}

// FanOutChanged reports that a shard falls back to polling because fan-out is not available, or
// that fan-out is back. Only consumers that use fan-out report it. It is a change of state.
type FanOutChanged struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Active        bool  // whether the shard is read with fan-out from now on
	Err           error // why the shard is polled; nil if Active
}

// Unpacked reports a read that returned KPL aggregates, or records that look like damaged
// aggregates.
type Unpacked struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Aggregates    int // unpacked aggregates
	Records       int // records in these aggregates
	Dropped       int // records dropped by weir.UnpackOwn: their keys belong to other shards
	Repeats       int // records dropped by weir.Options.DropRepeats
	Damaged       int // records that looked like aggregates but were not, delivered unchanged
}

// Filtered reports a read with records that weir.Options.Filter dropped or could not match. If the
// lease ended before all records of the read were filtered, the event describes only the records
// that were.
type Filtered struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Dropped       int // records that match no pattern
	NotJSON       int // records that could not be matched; see weir.Filter.NotJSON
}

func (Read) isEvent()            {}
func (ReadFailed) isEvent()      {}
func (PositionExpired) isEvent() {}
func (FanOutChanged) isEvent()   {}
func (Unpacked) isEvent()        {}
func (Filtered) isEvent()        {}
