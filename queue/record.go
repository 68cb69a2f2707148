package queue

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/deadletter"
)

// Record is one record of a queue. Data and Tags must not be changed. They may be kept.
type Record struct {
	// Data is the payload.
	Data []byte
	// Queue is the ARN of the queue.
	Queue string
	// PartitionKey is the key that the producer chose. It may be empty.
	PartitionKey string
	// ID is the record ID of the service. It is the same for each delivery of the record, and in
	// every queue of the stream. The records of an aggregate share it.
	ID string
	// Sub is the number of the record in its aggregate, from 1. It is 0 for other records.
	Sub int
	// Arrived is when the stream got the record.
	Arrived time.Time
	// FirstReceived is when the queue first delivered the record to a consumer.
	FirstReceived time.Time
	// ReceiveCount is how often the queue has delivered the record, including this delivery.
	ReceiveCount int
	// Attempt is 1 for the first call with the record in this process, and grows with each failure.
	Attempt int
	// Tags are those of the aggregate, such as the context of a trace. Most records have none.
	Tags aggregate.Tags
}

// Key identifies the record: its ID, followed by "+" and Sub for a record of an aggregate. An
// idempotent sink can use it.
func (r *Record) Key() string {
	if r.Sub == 0 {
		return r.ID
	}
	return r.ID + "+" + strconv.Itoa(r.Sub)
}

// FromLetter returns the record of a dead letter, so that a program can pass it to its handler
// again. Its Key is that of the original record. Attempt is 1, and FirstReceived, ReceiveCount and
// Tags are unknown. ok is false if the dead letter is not about a record of a queue.
func FromLetter(l *deadletter.Letter) (r Record, ok bool) {
	of, ok := l.Queue()
	if !ok {
		return Record{}, false
	}
	return Record{Data: l.Data, Queue: of.Queue, PartitionKey: l.PartitionKey, ID: of.ID, Sub: of.Sub, Arrived: l.Arrived, Attempt: 1}, true
}

// Handler handles records. Implementations are [RecordFunc] and [BatchFunc].
//
// If the handler returns nil, the records are acknowledged. After an error or a panic, they are
// handled again after a backoff, in this process as long as it can extend their holds. An error of
// [weir.Reject] sets a record aside. An error of [weir.Stop] stops Run as the end of its context
// does, and the records of the call are delivered again when their holds end. Up to
// [Options].Concurrency calls run concurrently.
//
// The context ends with [ErrHoldLost] if a record may be delivered to another consumer, and with
// [weir.ErrStopping] when Run stops and [Options].StopTimeout is over. It has the values of the
// context of Run.
type Handler interface {
	handle(ctx context.Context, records []Record) error
	most(o *Options) int // records of a call
}

// RecordFunc is a [Handler] that gets one record per call.
type RecordFunc func(ctx context.Context, r Record) error

func (f RecordFunc) handle(ctx context.Context, records []Record) error { return f(ctx, records[0]) }
func (f RecordFunc) most(*Options) int                                  { return 1 }

// BatchFunc is a [Handler] that gets up to [Options].BatchSize records per call. It owns the slice.
// An error that names records with [Failed] concerns only these; the others are acknowledged. Any
// other error concerns all records, which are then handled one by one to find the failing one. The
// context ends when the hold of one of the records is lost.
type BatchFunc func(ctx context.Context, records []Record) error

func (f BatchFunc) handle(ctx context.Context, records []Record) error { return f(ctx, records) }
func (f BatchFunc) most(o *Options) int                                { return o.BatchSize }

// Failed returns an error that says which record of a batch failed. Several such errors can be
// joined with [errors.Join]. err may be an error of [weir.Reject].
func Failed(r Record, err error) error {
	if err == nil {
		err = errors.New("weir: the handler failed without an error")
	}
	return &failedError{r.Key(), err}
}

// FailedRecords returns the records that err names with [Failed]. It returns nil if a part of err
// names no record, because any of the records may then have failed.
func FailedRecords(err error, records []Record) (named []Record) {
	keys, whole := failures(err)
	if whole {
		return nil
	}
	for i := range records {
		if keys[records[i].Key()] != nil {
			named = append(named, records[i])
		}
	}
	return named
}

type failedError struct {
	key string
	err error
}

func (e *failedError) Error() string { return e.err.Error() }
func (e *failedError) Unwrap() error { return e.err }

// failures returns the errors of the records that err names. whole is true if a part of err names
// no record.
func failures(err error) (named map[string]error, whole bool) {
	var visit func(error)
	visit = func(err error) {
		switch e := err.(type) { //nolint:errorlint // it goes through the tree itself
		case *failedError:
			if named == nil {
				named = map[string]error{}
			}
			named[e.key] = errors.Join(named[e.key], e.err)
		case interface{ Unwrap() []error }:
			for _, err := range e.Unwrap() {
				visit(err)
			}
		case interface{ Unwrap() error }:
			if e.Unwrap() == nil || !errors.As(err, new(*failedError)) {
				whole = true
				return
			}
			visit(e.Unwrap())
		default:
			whole = true
		}
	}
	if err != nil {
		visit(err)
	}
	return named, whole
}
