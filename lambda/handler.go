package lambda

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir"
)

// Handler is a [weir.Handler] that passes batches to a Lambda function. It is safe for concurrent
// use if Invoke is.
type Handler struct {
	// Invoke passes an event to the function and returns the function's answer. An error means that
	// the function failed. Required.
	Invoke func(ctx context.Context, b *weir.Batch, event []byte) ([]byte, error)
	// Source returns the origin that events of a stream contain. Required.
	Source func(stream string) Source
	// Report enables answers that name failed records; see [FailedFrom]. Without Report, every
	// answer means that all records are handled.
	Report bool
	// MaxAge is the maximum age of a record. The function does not receive older records: they fail
	// with [weir.RejectOld] and are dead-lettered, as with Lambda. The age is the time since the
	// record arrived at the service, measured with the clock of this machine. A record without a
	// known arrival time has no age. Records can also be too old after an outage or after a reset
	// to an earlier time. [weir.FailurePolicy].MaxAge does not dead-letter such records, but this
	// MaxAge does. It requires [weir.FailurePolicy].Destination. The default is 0, which means no
	// limit.
	MaxAge time.Duration
	// Retries is called before the pause after which [Handler.Windows] repeats a failed call. The
	// consumer itself reports all other failures. Optional.
	Retries func(b *weir.Batch, err error, attempt int, pause time.Duration)
}

// errUnfit is the error for a record that is too large for Lambda to deliver to any function.
var errUnfit = errors.New("lambda: the record does not fit into an event of 6 MiB")

var errReported = errors.New("lambda: the function reported that this record failed")

// Handle passes the records of b to the function, in one event if they fit into [MaxBytes].
// Otherwise it sends several events, one after the other. If the function fails at one of several
// events, Handle sends the records of that event again, one by one. Without this, the records of
// later events, which the function has not received, would count as failed.
func (h Handler) Handle(ctx context.Context, b *weir.Batch) error {
	source := h.Source(b.Stream)
	for from := 0; from < len(b.Records); {
		rest := b.Records[from:]
		if n := tooOld(len(rest), func(i int) time.Time { return rest[i].ArrivalTime() }, time.Now(), h.MaxAge); n > 0 {
			return weir.RejectOld(rest[0], n, fmt.Errorf("lambda: the record is older than %v, so the function does not get it", h.MaxAge))
		}
		event, n := fill(source, b.Records[from:], eventTail)
		if n == 0 {
			return weir.RejectAt(b.Records[from], errUnfit)
		}
		err := h.give(ctx, b, event, b.Records[from:from+n])
		_, named := weir.FailedRecord(err)
		if err != nil && !named && n < len(b.Records) && ctx.Err() == nil {
			err = h.single(ctx, b, source, b.Records[from:from+n])
		}
		if err != nil {
			return err
		}
		from += n
	}
	return nil
}

// single passes records to the function one by one and stops at the first failure.
func (h Handler) single(ctx context.Context, b *weir.Batch, s Source, records []weir.Record) error {
	for i := range records {
		err := h.give(ctx, b, AppendEvent(nil, s, records[i:i+1]), records[i:i+1])
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return weir.FailedAt(records[i], err)
		}
	}
	return nil
}

// give passes one event with the given records to the function.
func (h Handler) give(ctx context.Context, b *weir.Batch, event []byte, records []weir.Record) error {
	answer, err := h.Invoke(ctx, b, event)
	if err != nil || !h.Report {
		return err
	}
	failed, err := FailedFrom(answer, numbers(records))
	if err != nil {
		return err
	}
	if failed < len(records) {
		return weir.FailedAt(records[failed], fmt.Errorf("%w (%s)", errReported, records[failed].SequenceNumber))
	}
	return nil
}

func numbers(records []weir.Record) []string {
	ids := make([]string, len(records))
	for i, r := range records {
		ids[i] = r.SequenceNumber
	}
	return ids
}

// fill returns an event that ends in tail, with as many of the records as fit. n is the number of
// records in the event.
func fill(s Source, records []weir.Record, tail string) (event []byte, n int) {
	event = append(event, eventHead...)
	for i, r := range records {
		before := len(event)
		if i > 0 {
			event = append(event, ',')
		}
		event = s.appendRecord(event, r)
		if len(event)+len(tail) > MaxBytes {
			return append(event[:before], tail...), i
		}
	}
	return append(event, tail...), len(records)
}
