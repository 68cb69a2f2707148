package otelweir

import (
	"context"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-go/weir/event"
)

// onEvent updates the metrics for an event.
func (t *Telemetry) onEvent(ctx context.Context, e event.Event) {
	in := t.instruments
	switch e := e.(type) {
	case event.Read:
		t.read(ctx, e)
	case event.BatchHandled:
		t.batchHandled(ctx, e)
	case event.CheckpointSaved:
		in.checkpointDuration.Record(ctx, e.Took.Seconds(), t.of(e.Stream).ownR...)
	case event.Unpacked:
		if e.Repeats > 0 {
			in.repeatsDropped.Add(ctx, int64(e.Repeats), t.of(e.Stream).own...)
		}
	case event.Filtered:
		in.filteredRecords.Add(ctx, int64(e.Dropped), t.of(e.Stream).own...)
	case event.HandlerFailed:
		in.handlerFailures.Add(ctx, 1, t.of(e.Stream).own...)
	case event.DeadLettered:
		in.deadLetteredRecords.Add(ctx, int64(e.Records), t.with(e.Stream, reasonKey.String(string(e.Reason))))
	case event.DeadLetterFailed:
		in.deadLetterFailures.Add(ctx, 1, t.of(e.Stream).own...)
	case event.ReadFailed:
		counter := in.readFailures
		if e.Throttled {
			counter = in.readThrottled
		}
		counter.Add(ctx, 1, t.of(e.Stream).own...)
	case event.PositionExpired:
		in.positionsExpired.Add(ctx, 1, t.of(e.Stream).own...)
	case event.LeaseTaken:
		t.of(e.Stream)
		in.leaseChanges.Add(ctx, 1, t.with(e.Stream, reasonKey.String("taken")))
	case event.LeaseEnded:
		in.leaseChanges.Add(ctx, 1, t.with(e.Stream, reasonKey.String(e.Reason.String())))
	case event.Stalled:
		in.stalls.Add(ctx, 1, t.of(e.Stream).own...)
	case event.StoreFailed:
		in.storeFailures.Add(ctx, 1,
			metric.WithAttributes(appKey.String(t.app), opKey.String(string(e.Op))))
	case event.Leading:
		t.leading.Store(&e)
	}
}

func (t *Telemetry) read(ctx context.Context, e event.Read) {
	in, of := t.instruments, t.of(e.Stream)
	in.reads.Add(ctx, 1, of.own...)
	in.readRecords.Add(ctx, int64(e.Records), of.own...)
	in.readBytes.Add(ctx, int64(e.Bytes), of.own...)
	in.consumedMessages.Add(ctx, int64(e.Records), of.read...)
	if e.Took > 0 {
		in.readDuration.Record(ctx, e.Took.Seconds(), of.ownR...)
		in.operationDuration.Record(ctx, e.Took.Seconds(), of.readR...)
	}
	if t.tracer == nil || !t.readSpans {
		return
	}
	attributes := append(of.poll[:len(of.poll):len(of.poll)],
		partition.String(e.Shard), messageCount.Int(e.Records))
	_, span := t.tracer.Start(ctx, of.pollSpan, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attributes...), trace.WithTimestamp(e.Time.Add(-e.Took)))
	span.End(trace.WithTimestamp(e.Time))
}

func (t *Telemetry) batchHandled(ctx context.Context, e event.BatchHandled) {
	in, of := t.instruments, t.of(e.Stream)
	in.handledRecords.Add(ctx, int64(e.Records), of.own...)
	in.handledBytes.Add(ctx, int64(e.Bytes), of.own...)
	if !t.wrapped.Load() && e.Records > 0 {
		t.recordCall(ctx, e.Stream, e.Took, "")
	}
}
