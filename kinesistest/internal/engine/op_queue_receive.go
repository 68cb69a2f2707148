package engine

import (
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// Limits of a receive, in records and seconds.
const (
	maxReceive        = 10
	defaultWait       = 9
	maxWait           = 20
	maxVisibility     = 43_200
	maxReceiveCount   = 1000
	receivedOverhead  = 512 // upper bound for the encoded size without data and key
	maxReceiptHandle  = 1024
	maxReceiptEntries = 10
)

// queueRef is the part of a request that names a queue.
type queueRef struct{ arn optText }

func (r *queueRef) fields(more ...codec.Field) codec.Fields {
	return append(codec.Fields{{Name: "QueueARN", Into: &r.arn}}, more...)
}

func (r *queueRef) validate(v *validator) {
	if v.required(r.arn.Set, "queueARN") {
		v.text(r.arn, "queueARN", queueARN, 2048)
	}
}

func (r *queueRef) target(e *Engine) Target {
	e.mu.Lock()
	defer e.mu.Unlock()
	if q := e.queues[queueID(r.arn.V)]; q != nil {
		return Target{Stream: q.stream.name, Queue: q.name}
	}
	return Target{}
}

// queueOf returns the current state of the queue that a request names. The caller holds e.mu.
func (c *call) queueOf(arn string) (*queue, error) {
	if q := c.queues[queueID(arn)]; q != nil && q.arn == arn && c.settleQueue(q, c.now) {
		return q, nil
	}
	return nil, notFound("Queue %s under account %s not found.", arn, c.cfg.Account)
}

// serving returns the queue like queueOf. It fails unless the queue delivers records.
func (c *call) serving(arn string) (*queue, error) {
	q, err := c.queueOf(arn)
	if err == nil && q.status != active && q.status != updating {
		return nil, notFound("Queue %s under account %s is %s. It delivers records while it is ACTIVE or UPDATING.", arn, c.cfg.Account, q.status)
	}
	return q, err
}

// ReceiveQueueRecords carries out ReceiveQueueRecords and ReceiveDeadLetterQueueRecords.
type ReceiveQueueRecords struct {
	queueRef
	limit, wait, timeout optInt
	on                   path

	// Waiter is set if no record is visible and the time to wait has not passed. The answer is not
	// written then. The caller waits and calls Do again, or calls [Engine.StopWaiting].
	Waiter *Waiter

	deadline time.Time // end of the wait, set by the first execution
}

func (r *ReceiveQueueRecords) Fields() codec.Fields {
	return r.fields(
		codec.Field{Name: "Limit", Into: &r.limit},
		codec.Field{Name: "WaitTimeSeconds", Into: &r.wait},
		codec.Field{Name: "VisibilityTimeoutSeconds", Into: &r.timeout},
	)
}

func (r *ReceiveQueueRecords) check() error {
	var v validator
	v.intRange(r.limit, "limit", 1, maxReceive)
	v.intRange(r.wait, "waitTimeSeconds", 1, maxWait)
	v.intRange(r.timeout, "visibilityTimeoutSeconds", 0, maxVisibility)
	r.validate(&v)
	return v.err()
}

func (r *ReceiveQueueRecords) do(c *call) error {
	if err := r.check(); err != nil {
		return err
	}
	records, err := r.take(c)
	if err != nil || r.Waiter != nil {
		return err
	}
	writeReceived(c.out, records)
	return nil
}

// take receives records, or sets r.Waiter.
func (r *ReceiveQueueRecords) take(c *call) ([]received, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.deadline.IsZero() {
		wait := int64(defaultWait)
		if r.wait.Set {
			wait = r.wait.V
		}
		r.deadline = c.now.Add(time.Duration(wait) * time.Second)
	}
	if r.Waiter != nil {
		r.Waiter.queue.leave(r.Waiter)
		r.Waiter = nil
	}
	q, err := c.queueOf(r.arn.V)
	if err != nil {
		return nil, err
	}
	if c.inject.EmptyPage {
		q.wake() // this call may have been woken for a record that it does not take
		return nil, nil
	}
	if q.status != active && q.status != updating {
		if !c.cfg.Queues.EmptyUnlessActive {
			_, err := c.serving(r.arn.V)
			return nil, err
		}
		r.await(c, q, q.until)
		return nil, nil
	}
	rules := q.ledger.rules
	if rules.ThrottleInFlight && r.on == normalPath && q.ledger.inFlight() >= rules.MaxInFlight {
		q.wake()
		return nil, fail("ThrottlingException", "Queue %s has %d records in flight. Acknowledge records before receiving more.", q.name, rules.MaxInFlight)
	}
	limit := maxReceive
	if r.limit.Set {
		limit = int(r.limit.V)
	}
	if rules.FillBatch && c.now.Before(r.deadline) && q.available(r.on) < limit {
		r.await(c, q, r.deadline)
		return nil, nil
	}
	timeout := q.attributes.visibility
	if r.timeout.Set {
		timeout = time.Duration(r.timeout.V) * time.Second
	}
	records := c.receive(q, c.now, r.on, limit, timeout)
	switch {
	case len(records) == 0:
		r.await(c, q, r.deadline)
	case q.available(r.on) > 0:
		q.wake()
	}
	return records, nil
}

// await sets r.Waiter, unless the time to wait has passed. The receive is carried out again when a
// hold ends, and at the given time.
func (r *ReceiveQueueRecords) await(c *call, q *queue, at time.Time) {
	at = earliest(at, r.deadline)
	if next, ok := q.ledger.next(); ok {
		at = earliest(at, next)
	}
	switch {
	case c.now.Before(r.deadline):
		r.Waiter = q.await(r.on, max(at.Sub(c.now), time.Millisecond))
	case r.on == normalPath:
		q.minute(c.now).empty++
	}
}

func writeReceived(out *codec.Encoder, records []received) {
	var bytes int64
	for i := range records {
		bytes += records[i].record.size() + receivedOverhead
	}
	growFor(out, bytes, len(records))
	out.Map()
	out.Key("QueueRecords").Array(len(records))
	for i := range records {
		r := &records[i]
		out.Elem().Map()
		out.Key("ReceiptHandle").Text(r.handle)
		out.Key("RecordId").Text(r.recordID)
		if r.record.key.Set {
			out.Key("PartitionKey").Text(r.record.key.V)
		}
		out.Key("Data").Blob(r.record.data)
		out.Key("ApproximateArrivalTimestamp").Millis(r.record.arrival)
		out.Key("FirstReceiveTimestamp").Time(r.first)
		out.Key("ReceiveCount").Int(int64(r.count))
		out.End()
	}
	out.End()
	out.End()
}
