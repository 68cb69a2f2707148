package otelweir

import (
	"context"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-go/weir"
)

// events returns the events that update the metrics.
func (t *Telemetry) events() weir.Events {
	in := t.instruments
	return weir.Events{
		LeaseTaken: func(ctx context.Context, e weir.LeaseTaken) {
			t.of(e.Stream)
			in.leaseChanges.Add(ctx, 1, t.with(e.Stream, reasonKey.String("taken")))
		},
		LeaseEnded: func(ctx context.Context, e weir.LeaseEnded) {
			in.leaseChanges.Add(ctx, 1, t.with(e.Stream, reasonKey.String(e.Reason.String())))
		},
		Read:         t.read,
		BatchHandled: t.batchHandled,
		CheckpointSaved: func(ctx context.Context, e weir.CheckpointSaved) {
			in.checkpointDuration.Record(ctx, e.Took.Seconds(), t.of(e.Stream).ownR...)
		},
		Filtered: func(ctx context.Context, e weir.Filtered) {
			in.filteredRecords.Add(ctx, int64(e.Dropped), t.of(e.Stream).own...)
		},
		HandlerFailed: func(ctx context.Context, e weir.HandlerFailed) {
			in.handlerFailures.Add(ctx, 1, t.of(e.Stream).own...)
		},
		GivenUp: func(ctx context.Context, e weir.GivenUp) {
			in.givenUpRecords.Add(ctx, int64(e.Records), t.with(e.Stream, reasonKey.String(string(e.Reason))))
		},
		LettersFailed: func(ctx context.Context, e weir.LettersFailed) {
			in.lettersFailures.Add(ctx, 1, t.of(e.Stream).own...)
		},
		ReadFailed: func(ctx context.Context, e weir.ReadFailed) {
			counter := in.readFailures
			if e.Throttled {
				counter = in.readThrottled
			}
			counter.Add(ctx, 1, t.of(e.Stream).own...)
		},
		PositionExpired: func(ctx context.Context, e weir.PositionExpired) {
			in.positionsExpired.Add(ctx, 1, t.of(e.Stream).own...)
		},
		Stalled: func(ctx context.Context, e weir.Stalled) {
			in.stalls.Add(ctx, 1, t.of(e.Stream).own...)
		},
		StoreFailed: func(ctx context.Context, e weir.StoreFailed) {
			in.storeFailures.Add(ctx, 1, metric.WithAttributes(appKey.String(t.app), opKey.String(string(e.Op))))
		},
		Leading: func(_ context.Context, e weir.Leading) { t.leading.Store(&e) },
	}
}

func (t *Telemetry) read(ctx context.Context, e weir.Read) {
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
	attributes := append(of.poll[:len(of.poll):len(of.poll)], partition.String(e.Shard), messageCount.Int(e.Records))
	_, span := t.tracer.Start(ctx, of.pollSpan, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attributes...), trace.WithTimestamp(e.Time.Add(-e.Took)))
	span.End(trace.WithTimestamp(e.Time))
}

func (t *Telemetry) batchHandled(ctx context.Context, e weir.BatchHandled) {
	in, of := t.instruments, t.of(e.Stream)
	in.handledRecords.Add(ctx, int64(e.Records), of.own...)
	in.handledBytes.Add(ctx, int64(e.Bytes), of.own...)
	if !t.wrapped.Load() && e.Records > 0 {
		t.recordCall(ctx, e.Stream, e.Took, "")
	}
}
