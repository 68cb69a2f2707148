package lambda

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/queue"
)

// QueueHandler passes the records of a Kinesis queue to a Lambda function. Its Handle is a
// [queue.BatchFunc]:
//
//	err := consumer.Run(ctx, queue.BatchFunc(lambda.QueueHandler{Invoke: invoke, Report: true}.Handle))
//
// AWS documents no event source for queues, so the function gets the event for Kinesis records. The
// sequenceNumber of a record is its [queue.Record].Key, and the eventSourceARN is the ARN of the
// queue. With Report, the records that an answer names as itemIdentifier are handled again, and the
// other records are acknowledged, as with SQS.
//
// A QueueHandler is safe for concurrent use if Invoke is.
type QueueHandler struct {
	// Invoke passes an event with records to the function and returns the function's answer. An
	// error means that the function failed. Required.
	Invoke func(ctx context.Context, records []queue.Record, event []byte) ([]byte, error)
	// RoleARN is the execution role of the function in events. Optional.
	RoleARN string
	// Report enables answers that name failed records. Without Report, every answer means that all
	// records are handled.
	Report bool
	// MaxAge is the maximum age of a record since its arrival in the stream. The function does not
	// receive older records: they are rejected; see [queue.FailurePolicy]. The default is 0, which
	// means no limit.
	MaxAge time.Duration
}

// Handle passes records to the function, in one event if they fit into [MaxBytes]. Otherwise it
// sends several events, one after the other. If the function fails at one of several events, Handle
// sends the records of that event again, one by one. Errors name the failed records with
// [queue.Failed]; an error that names no record concerns all of them.
func (h QueueHandler) Handle(ctx context.Context, records []queue.Record) error {
	var failed []error
	all := len(records)
	fit := make([]queue.Record, 0, all)
	for _, r := range records {
		switch {
		case h.MaxAge > 0 && !r.Arrived.IsZero() && time.Since(r.Arrived) > h.MaxAge:
			failed = append(failed, queue.Failed(r, weir.Reject(fmt.Errorf("lambda: the record is older than %v, so the function does not get it", h.MaxAge))))
		case base64.StdEncoding.EncodedLen(len(r.Data)) > MaxBytes-1<<16 && len(h.event(r)) > MaxBytes:
			failed = append(failed, queue.Failed(r, weir.Reject(errUnfit)))
		default:
			fit = append(fit, r)
		}
	}
	for len(fit) > 0 {
		event, n := h.fill(fit)
		err := h.give(ctx, fit[:n], event)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch {
		case err == nil:
		case len(queue.FailedRecords(err, fit[:n])) > 0:
			failed = append(failed, err)
		case n == all:
			return err
		case n == 1:
			failed = append(failed, queue.Failed(fit[0], err))
		default:
			for i := range n {
				if err := h.give(ctx, fit[i:i+1], h.event(fit[i])); err != nil {
					failed = append(failed, queue.Failed(fit[i], err))
				}
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
			}
		}
		fit = fit[n:]
	}
	return errors.Join(failed...)
}

// give passes one event with the given records to the function.
func (h QueueHandler) give(ctx context.Context, records []queue.Record, event []byte) error {
	answer, err := h.Invoke(ctx, records, event)
	if err != nil || !h.Report {
		return err
	}
	keys := make([]string, len(records))
	for i := range records {
		keys[i] = records[i].Key()
	}
	items, err := failedItems(answer, keys)
	if err != nil {
		return err
	}
	var failed []error
	for _, i := range items {
		failed = append(failed, queue.Failed(records[i], fmt.Errorf("%w (%s)", errReported, keys[i])))
	}
	return errors.Join(failed...)
}

// fill returns an event with as many of the records as fit, and their number. One always fits.
func (h QueueHandler) fill(records []queue.Record) (event []byte, n int) {
	event = append(event, eventHead...)
	for i := range records {
		before := len(event)
		if i > 0 {
			event = append(event, ',')
		}
		event = h.append(event, &records[i])
		if i > 0 && len(event)+len(eventTail) > MaxBytes {
			return append(event[:before], eventTail...), i
		}
	}
	return append(event, eventTail...), len(records)
}

// event returns the event with one record.
func (h QueueHandler) event(r queue.Record) []byte {
	return append(h.append([]byte(eventHead), &r), eventTail...)
}

func (h QueueHandler) append(dst []byte, r *queue.Record) []byte {
	region := ""
	if parts := strings.SplitN(r.Queue, ":", 5); len(parts) == 5 {
		region = parts[3]
	}
	key := r.Key()
	arrived := int64(0)
	if !r.Arrived.IsZero() {
		arrived = r.Arrived.UnixMilli()
	}
	return Source{Region: region, StreamARN: r.Queue, RoleARN: h.RoleARN}.appendItem(dst, item{r.PartitionKey, key, r.Data, arrived, "queue:" + key})
}
