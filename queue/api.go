package queue

import (
	"context"
	"time"
)

// API has the calls that a [Consumer] makes. A [*Client] implements it. Programs implement it to
// count, refuse or fake calls. The methods must be safe for concurrent use, and should return when
// ctx ends. A Consumer repeats failed calls itself.
type API interface {
	// ListQueues returns a page of the queues of the account and region.
	ListQueues(context.Context, ListQueuesInput) (ListQueuesOutput, error)
	// DescribeQueue returns the state and the attributes of a queue.
	DescribeQueue(ctx context.Context, arn string) (Description, error)
	// Receive waits for records and hides them from other consumers.
	Receive(context.Context, ReceiveInput) (ReceiveOutput, error)
	// Acknowledge removes records from the queue.
	Acknowledge(ctx context.Context, arn string, handles []string) (BatchOutput, error)
	// SetVisibility changes how long records stay hidden.
	SetVisibility(ctx context.Context, arn string, entries []Visibility) (BatchOutput, error)
}

// ListQueuesInput selects a page of queues.
type ListQueuesInput struct {
	MaxResults int        // 1 to 10,000; 0 leaves it to the service
	NextToken  string     // of the previous page; empty for the first page
	StreamARN  string     // only queues of this stream, if not empty
	Created    *time.Time // creation time of that stream, because an earlier one may have had its name
}

// ListQueuesOutput is a page of queues. It may be empty although another page follows.
type ListQueuesOutput struct {
	Queues    []Summary
	NextToken string // empty on the last page
}

// Summary is a queue in a listing.
type Summary struct {
	Name, ARN, Status string
	Created           time.Time
	StreamARNs        []string
}

// Status of a queue.
const (
	Creating = "CREATING" // it delivers nothing yet
	Active   = "ACTIVE"
	Updating = "UPDATING" // it delivers records as an active queue does
	Deleting = "DELETING" // it delivers nothing more
)

// Description is the state of a queue.
type Description struct {
	Name, ARN, Status string
	Created           time.Time
	Streams           []StreamConfiguration
	Attributes        Attributes
}

// StreamConfiguration is the stream of a queue, and where the queue begins.
type StreamConfiguration struct {
	StreamARN string
	Start     Start
}

// Start is the place in the stream where a queue begins. The zero value is left to the service,
// which takes LATEST.
type Start struct {
	Type string    // LATEST, TRIM_HORIZON or AT_TIMESTAMP
	At   time.Time // for AT_TIMESTAMP
}

// Attributes are the settings of a queue that can be changed.
type Attributes struct {
	// Visibility is how long a received record is hidden, in whole seconds, unless a receive says
	// otherwise. Nil is the service's default, 30 s, or no change.
	Visibility *time.Duration
	// DeadLetters is BUILT_IN or NONE. Empty is the service's default, BUILT_IN, or no change.
	DeadLetters string
	// MaxReceiveCount is how often a record is delivered before it becomes a dead letter, 1 to
	// 1,000. It is required with BUILT_IN. 0 is the service's default, 6, or no change.
	MaxReceiveCount int
}

// ReceiveInput asks for records.
type ReceiveInput struct {
	QueueARN string
	Limit    int           // 1 to 10 records
	Wait     time.Duration // 1 s to 20 s, in whole seconds: how long to wait for the first record
	Hold     time.Duration // 1 s to 12 h, in whole seconds: how long the records stay hidden
	// Admit is called with the size of the answer in bytes before its body is read, if the size is
	// known. The call fails with the error of Admit. Nil admits every answer. An implementation of
	// [API] may ignore it.
	Admit func(ctx context.Context, bytes int64) error
}

// ReceiveOutput contains the received records.
type ReceiveOutput struct {
	Records []Delivery
	// Answered is when the answer began to arrive. The holds of the records count from this time.
	// If it is zero, they count from a second before Receive returned.
	Answered time.Time
}

// Delivery is a received record.
type Delivery struct {
	ReceiptHandle string // new for each delivery
	RecordID      string // the same for each delivery and in every queue of the stream
	PartitionKey  string // may be empty
	Data          []byte
	Arrived       time.Time // in the stream
	FirstReceived time.Time
	ReceiveCount  int // deliveries, including this one
}

// Visibility is a new time for which a record stays hidden.
type Visibility struct {
	ReceiptHandle string
	Hold          time.Duration // 0 to 12 h, in whole seconds, from when the service gets the request
}

// BatchOutput contains the entries of a batch that failed. The others were successful.
type BatchOutput struct {
	Failed []FailedEntry
}

// FailedEntry is an entry of a batch that failed.
type FailedEntry struct{ ReceiptHandle, Code, Message string }
