package lambda

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir"
)

// Handler is a [weir.Handler] that gives batches to a function. It may be used concurrently if
// Invoke may.
type Handler struct {
	// Invoke gives an event to the function and returns its answer. Required. An error means that
	// the function failed.
	Invoke func(ctx context.Context, b *weir.Batch, event []byte) ([]byte, error)
	// Source is what events say of where the records of a stream are from.
	Source func(stream string) Source
	// Report has the answer say which records failed; see [FailedFrom]. Without it an answer means
	// that all are done, whatever it says.
	Report bool
	// MaxAge leaves records untried, as [weir.TooOld] says, that arrived at the service longer ago
	// than that by this machine's clock. So does Lambda, and unlike [weir.GiveUp].MaxAge it turns
	// what is old after an outage, or after a reset to an earlier time, into letters. It needs
	// [weir.GiveUp].To. Records whose time of arrival is not known have no age. 0, the default, is
	// no bound.
	MaxAge time.Duration
	// Retries is told of a call of [Handler.Windows] that failed and is made again after a pause.
	// Optional. Of all others the consumer tells.
	Retries func(b *weir.Batch, err error, attempt int, pause time.Duration)
}

// errUnfit is for a record that no function of Lambda could get.
var errUnfit = errors.New("lambda: the record does not fit into an event of 6 MiB")

var errReported = errors.New("lambda: the function said that this record failed")

// Handle gives the records of b to the function, in one event if they fit into [MaxBytes] and in
// several, one after the other, if they do not. When the function fails at one of several events,
// the records of that are given to it one by one, so that those of the events behind it, which it
// never saw, do not count as failed.
func (h Handler) Handle(ctx context.Context, b *weir.Batch) error {
	source := h.Source(b.Stream)
	for from := 0; from < len(b.Records); {
		rest := b.Records[from:]
		if n := tooOld(len(rest), func(i int) time.Time { return rest[i].ArrivalTime() }, time.Now(), h.MaxAge); n > 0 {
			return weir.TooOld(rest[0], n, fmt.Errorf("lambda: the record is older than %v, and is not tried", h.MaxAge))
		}
		event, n := fill(source, b.Records[from:], eventTail)
		if n == 0 {
			return weir.FailedAt(b.Records[from], weir.Reject(errUnfit))
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

// single gives records to the function one by one, up to the first that it fails at.
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

// give gives an event of records to the function.
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

// fill returns an event of as many records as fit with a tail, and how many those are.
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
