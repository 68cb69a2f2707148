package event

import (
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/shard"
)

// BatchBegins reports that the handler is called.
type BatchBegins struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Records       int // number of records in the call
	Attempt       int // see weir.Batch
}

// BatchHandled reports that the handler returned nil for a batch, or that a function that pulls
// batches has completed all records of a batch and requested the next batch.
type BatchHandled struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Records       int
	Bytes         int           // size of the data
	Behind        time.Duration // see weir.Batch
	Took          time.Duration // duration of the handler's last call
	Attempts      int           // 1 when the first call succeeded
}

// HandlerFailed reports that the handler failed. Records that are not done are handled again or
// dead-lettered.
type HandlerFailed struct {
	Time          time.Time // when it happened
	Stream, Shard string
	At            shard.Position // everything before this position is done
	// Records is the number of records that are not done, from First to Last. First and Last are
	// sequence numbers as at the end of weir.Record.ID, with "+2" appended for the second record of
	// an aggregate. When all records were done, and when Open or Position of weir.ShardHandlers, or
	// Pull or Position of weir.PullHandler failed, Records is 0, and First and Last are "".
	Records     int
	First, Last string
	Err         error // wraps a *weir.PanicError after a panic
	Attempt     int   // from 1
	// Next is the pause before the next attempt. It is 0 when the records are retried at once in
	// smaller batches, and when there is no next attempt because all records are done or
	// dead-lettered.
	Next time.Duration
}

// DeadLettered reports that weir.Options.OnFailure dead-lettered records, and that their dead
// letters are durable.
type DeadLettered struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Records       int    // number of records that were dead-lettered together
	First         string // the ID of the first record
	Reason        deadletter.Reason
	Attempts      int   // handler calls that failed with this record
	Err           error // the last failure
}

// DeadLetterDelayed reports that records could be dead-lettered but are retried instead, because
// this worker has handled no other record meanwhile, or because many were already dead-lettered;
// see weir.FailurePolicy.OutageGrace and MaxPerMinute. It is reported once per record and reason.
type DeadLetterDelayed struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Records       int // number of records that could be dead-lettered together
	Reason        deadletter.Reason
	Why           string // why they are not dead-lettered yet
}

// DeadLetterFailed reports that dead letters could not be written to their destination. The shard
// waits and retries.
type DeadLetterFailed struct {
	Time          time.Time // when it happened
	Stream, Shard string
	Records       int // number of records that the dead letters are for
	Err           error
	Attempt       int           // from 1
	Next          time.Duration // pause before the next attempt
}

func (BatchBegins) isEvent()       {}
func (BatchHandled) isEvent()      {}
func (HandlerFailed) isEvent()     {}
func (DeadLettered) isEvent()      {}
func (DeadLetterDelayed) isEvent() {}
func (DeadLetterFailed) isEvent()  {}
