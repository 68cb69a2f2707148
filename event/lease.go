package event

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/shard"
)

// LeaseTaken reports that this worker begins to read a shard. It is a change of state.
type LeaseTaken struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Epoch         uint64         // see weir.Batch
	From          shard.Position // where reading resumes
}

// LeaseEnded reports that this worker has stopped reading a shard. Its handler has returned, unless
// it was abandoned; see [Stalled]. It is a change of state.
type LeaseEnded struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Epoch         uint64         // see weir.Batch
	At            shard.Position // last handled position; shard.End when the shard was read to its end
	Reason        EndReason
}

// EndReason is why this worker stopped reading a shard.
type EndReason uint8

// The reasons why a worker stops reading a shard.
const (
	EndLost      EndReason = iota // the lease was moved, or its validity was over
	EndFinished                   // the shard was read to its end
	EndHandedOff                  // another worker gets the lease
	EndStopped                    // Run stops
	EndStalled                    // the shard made no progress here
)

// String returns "lost", "finished", "handed off", "stopped" or "stalled".
func (r EndReason) String() string {
	words := [...]string{
		EndLost: "lost", EndFinished: "finished", EndHandedOff: "handed off",
		EndStopped: "stopped", EndStalled: "stalled",
	}
	if int(r) < len(words) {
		return words[r]
	}
	return fmt.Sprintf("EndReason(%d)", uint8(r))
}

// CheckpointSaved reports that progress of a shard is durable in the store.
type CheckpointSaved struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Epoch         uint64         // see weir.Batch
	At            shard.Position // everything before this position is done
	// Took is the time that the heartbeat with this checkpoint took until the store answered.
	// Shards that save together have the same value.
	Took time.Duration
}

// Suspected reports that several workers in a row died at the same position of a shard, and that
// this worker has the shard now; see weir.FailurePolicy.SuspectAfter. It is reported before the
// first record after the lease was taken, and once more when the record that kills workers is
// identified. It is a change of state.
type Suspected struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Epoch         uint64         // see weir.Batch
	At            shard.Position // the shard's checkpoint when the workers died
	Died          int            // number of workers that died, one after the other
	// DiedOneByOne is the number of workers that died while they handled a single record.
	DiedOneByOne int
	// Record is the ID of the record that kills workers, or "" while it is unknown.
	Record string
	Next   time.Duration // pause before the record is handled again
}

// Stalled reports that a shard made no progress for too long and that its lease is released; see
// weir.Timing.StallAfter and HandlerTimeout. It also reports a handler that did not finish within
// weir.Timing.StopTimeout; Err is then weir.ErrStopping. It is a change of state.
type Stalled struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Epoch         uint64        // see weir.Batch
	Reason        health.Reason // what the shard did or waited for, without progress
	Since         time.Time     // since when
	Err           error         // the last error of reading or of the handler, if any
	// Abandoned is set if the handler ignored the end of its context, which ended at Since. The
	// handler still runs, but its lease is released.
	Abandoned bool
}

// Leading reports that this worker becomes the leader or stops being the leader. It is a change of
// state.
type Leading struct {
	Time  time.Time // when it happened
	Leads bool      // whether this worker leads from now on
	Epoch uint64    // the number of changes of the leader
}

// StoreFailed reports that a call of the store, the listing of a stream, or a call of
// weir.Options.DiscoverStreams failed. weir retries the call. It is a change of state: the latest
// event of each operation always arrives.
type StoreFailed struct {
	Time  time.Time // when it happened
	Op    StoreOp
	Err   error
	Since time.Time // when the outage began, or when the call failed if that is unknown
}

// StoreOp is a call of the store, of the service or of weir.Options.DiscoverStreams.
type StoreOp string

// The operations that [StoreFailed] reports.
const (
	OpHeartbeat StoreOp = "heartbeat"
	OpView      StoreOp = "view"
	OpApply     StoreOp = "apply"
	OpLead      StoreOp = "lead"
	OpLeave     StoreOp = "leave"
	OpList      StoreOp = "list"    // listing the shards of a stream
	OpStreams   StoreOp = "streams" // weir.Options.DiscoverStreams
)

func (LeaseTaken) isEvent()      {}
func (LeaseEnded) isEvent()      {}
func (CheckpointSaved) isEvent() {}
func (Suspected) isEvent()       {}
func (Stalled) isEvent()         {}
func (Leading) isEvent()         {}
func (StoreFailed) isEvent()     {}
