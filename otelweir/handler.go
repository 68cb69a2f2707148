package otelweir

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
)

// Handler wraps a handler. Each call with records gets a span of the kind consumer, named "process"
// followed by the name of the stream. The context for next contains the span. The duration of the
// call is recorded. The span has links to the spans of the records; see [Options].Carrier. A lease
// that is handed off while records are handled does not count as an error of the span.
func (t *Telemetry) Handler(next weir.Handler) weir.Handler {
	t.wrapped.Store(true)
	return &handler{t: t, next: next, spans: t.tracer != nil}
}

// Records wraps a function that handles one record, like [Telemetry.Handler]. Each record gets its
// own span, and the batch gets none.
func (t *Telemetry) Records(f weir.RecordFunc) weir.Handler {
	t.wrapped.Store(true)
	if t.tracer == nil {
		return &handler{t: t, next: f}
	}
	return &handler{t: t, next: weir.RecordFunc(func(ctx context.Context, r weir.Record) (err error) {
		ctx, span := t.process(ctx, r.Stream(), r.Shard(), []weir.Record{r})
		returned := false
		defer func() { finish(span, outcome(err, returned)) }()
		err = f(ctx, r)
		returned = true
		return err
	})}
}

// ShardHandlers wraps the handlers that Open creates, like [Telemetry.Handler]. It does not change
// the other fields. A [weir.PullHandler] has no calls to measure, so only [event.BatchHandled] is
// recorded for it.
func (t *Telemetry) ShardHandlers(next weir.ShardHandlers) weir.ShardHandlers {
	open := next.Open
	if open == nil {
		return next // RunShards refuses it
	}
	t.wrapped.Store(true)
	next.Open = func(ctx context.Context, term weir.Term) (weir.ShardHandler, error) {
		h, err := open(ctx, term)
		if err != nil || h == nil {
			return h, err
		}
		return &shardHandler{handler{t: t, next: h, spans: t.tracer != nil}, h}, nil
	}
	return next
}

// shardHandler is the handler of a shard during one lease.
type shardHandler struct {
	handler
	of weir.ShardHandler
}

// Close closes the wrapped handler.
func (s *shardHandler) Close(ctx context.Context, why event.EndReason) { s.of.Close(ctx, why) }

// handler wraps a handler and measures its calls.
type handler struct {
	t     *Telemetry
	next  weir.Handler
	spans bool
}

// Handle calls the wrapped handler and records the call.
func (h *handler) Handle(ctx context.Context, b *weir.Batch) (err error) {
	if len(b.Records) == 0 {
		return h.next.Handle(ctx, b)
	}
	var span trace.Span
	if h.spans {
		ctx, span = h.t.process(ctx, b.Stream, b.Shard, b.Records)
	}
	stream := b.Stream // a copy, because the handler may change its batch
	begun, returned := time.Now(), false
	defer func() {
		kind := outcome(err, returned)
		h.t.recordCall(ctx, stream, time.Since(begun), kind)
		if span != nil {
			finish(span, kind)
		}
	}()
	err = h.next.Handle(ctx, b)
	returned = true
	return err
}

// outcome returns the type of the error of a call. It returns "" if there is no error. It also
// returns "" if the lease is requested back, because that is not a failure.
func outcome(err error, returned bool) string {
	switch {
	case !returned:
		return "panic"
	case err == nil, errors.Is(err, weir.ErrHandedOff):
		return ""
	default:
		return typeOf(err)
	}
}

// recordCall records the duration of a call of the handler.
func (t *Telemetry) recordCall(ctx context.Context, stream string, took time.Duration, kind string) {
	of := t.of(stream)
	t.instruments.handlerDuration.Record(ctx, took.Seconds(), of.ownR...)
	if kind == "" {
		t.instruments.processDuration.Record(ctx, took.Seconds(), of.processR...)
		return
	}
	t.instruments.processDuration.Record(ctx, took.Seconds(), metric.WithAttributeSet(of.process), metric.WithAttributes(errorType.String(kind)))
}

// process starts the span for handling records of one shard.
func (t *Telemetry) process(ctx context.Context, stream, shard string, records []weir.Record) (context.Context, trace.Span) {
	of := t.of(stream)
	attributes := append(of.span[:len(of.span):len(of.span)], partition.String(shard), messageCount.Int(len(records)))
	return t.tracer.Start(ctx, of.processSpan, trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(attributes...), trace.WithLinks(t.links.of(records)...))
}

// finish ends a span. Unless kind is "", it marks the span as failed.
func finish(span trace.Span, kind string) {
	if kind != "" {
		span.SetAttributes(errorType.String(kind))
		span.SetStatus(codes.Error, "")
	}
	span.End()
}
