package queue

import (
	"context"
	"time"

	"github.com/weir-go/weir/deadletter"
)

// Events are functions that a consumer calls when something happens, for metrics and tests. Nil
// functions are skipped. A separate goroutine calls the functions one after the other. If the
// functions do not keep up, events are dropped; [Consumer.Counts] has exact numbers. A panic is
// logged.
type Events struct {
	// Received is called after each receive.
	Received func(context.Context, Received)
	// Filtered is called after a receive if Options.Filter dropped records or could not read them.
	Filtered func(context.Context, Filtered)
	// Handled is called after each call of the handler.
	Handled func(context.Context, Handled)
	// Acknowledged is called after each call of AcknowledgeQueueRecords.
	Acknowledged func(context.Context, Acknowledged)
	// HoldLost is called when a record may be delivered to another consumer.
	HoldLost func(context.Context, HoldLost)
	// HandledLate is called when the handler succeeded with a record whose hold was lost, after the
	// attempt to acknowledge it. The record may have been handled twice.
	HandledLate func(context.Context, HandledLate)
	// SetAside is called when a record was set aside.
	SetAside func(context.Context, SetAside)
}

// JoinEvents returns events that call the functions of first, and then those of second.
func JoinEvents(first, second Events) Events {
	return Events{
		Received: both(first.Received, second.Received), Filtered: both(first.Filtered, second.Filtered), Handled: both(first.Handled, second.Handled),
		Acknowledged: both(first.Acknowledged, second.Acknowledged), HoldLost: both(first.HoldLost, second.HoldLost),
		HandledLate: both(first.HandledLate, second.HandledLate), SetAside: both(first.SetAside, second.SetAside),
	}
}

func both[E any](first, second func(context.Context, E)) func(context.Context, E) {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func(ctx context.Context, e E) {
		first(ctx, e)
		second(ctx, e)
	}
}

// Received is the argument of [Events].Received.
type Received struct {
	Time    time.Time     // when the call began
	Took    time.Duration // until its answer
	Limit   int           // maximum number of records in the answer
	Records int
	Bytes   int
	Err     error
}

// Filtered is the argument of [Events].Filtered.
type Filtered struct {
	Time    time.Time
	Dropped int // records
	NotJSON int // records that are not JSON, including those that were dropped
}

// Handled is the argument of [Events].Handled.
type Handled struct {
	Time    time.Time // when the call began
	Took    time.Duration
	Records int
	Failed  int // records that are handled again or set aside
	Err     error
}

// Acknowledged is the argument of [Events].Acknowledged.
type Acknowledged struct {
	Time    time.Time // when the call began
	Took    time.Duration
	Records int // entries of the call
	Failed  int // entries that the service refused for good
	Again   int // entries that are sent again
	Code    string
	Err     error // of the call
}

// Phase is what a consumer does with a record.
type Phase string

const (
	Waiting       Phase = "waiting"       // for a handler
	Handling      Phase = "handling"      // a handler has it
	Backoff       Phase = "backoff"       // it failed and waits
	Acknowledging Phase = "acknowledging" // it is handled and waits for its acknowledgement
)

// HoldLost is the argument of [Events].HoldLost.
type HoldLost struct {
	Time     time.Time
	RecordID string
	Phase    Phase  // when the hold was lost
	Code     string // of the refused extension; empty if the hold ended
}

// HandledLate is the argument of [Events].HandledLate.
type HandledLate struct {
	Time         time.Time
	RecordID     string
	Acknowledged bool   // the service accepted the acknowledgement
	Code         string // of the refusal
}

// SetAside is the argument of [Events].SetAside.
type SetAside struct {
	Time     time.Time
	Record   string // its [Record.Key]
	Reason   deadletter.Reason
	Attempts int
	Stored   bool // in the destination; otherwise it was released to the queue
	Err      error
}

// Counts are the numbers of a consumer since [New].
type Counts struct {
	Receives, EmptyReceives, FailedReceives int // calls
	AckCalls, VisibilityCalls               int // calls
	Received                                int // deliveries of records or aggregates
	Redelivered                             int // deliveries of records that this process still had, or had before
	Filtered                                int // records that Options.Filter dropped; each delivery counts
	NotJSON                                 int // records that Options.Filter could not read; each delivery counts
	Handled                                 int // records that were handled successfully
	Failed                                  int // records in failed calls of the handler
	Acknowledged                            int // deliveries
	NotAcknowledged                         int // deliveries whose acknowledgement was refused for good
	Extended                                int // extensions of holds
	HoldsLost                               int
	SetAside                                int
	Released                                int // deliveries that were made visible again
	// Spent is the number of receive counts that were spent without a failure of the handler, by
	// releases, lost holds, and handlers that did not finish within StopTimeout.
	Spent int

	InFlight int   // deliveries that this process has now
	Handling int   // handler calls now
	Bytes    int64 // of data in memory now
}
