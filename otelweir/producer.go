package otelweir

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/producer"
)

// ProducerOptions configures a [Producer]. The zero value uses the global provider.
type ProducerOptions struct {
	// TracerProvider creates the spans. The default is the global provider. With the provider of
	// package trace/noop, records get the trace context of the caller's span.
	TracerProvider trace.TracerProvider
	// Propagator writes the trace context. The default is W3C's trace context.
	Propagator propagation.TextMapPropagator
}

// Producer puts records with their trace context in tags, where the carrier [Tags] of a consumer
// finds it. It is safe for concurrent use.
type Producer struct {
	to         *producer.Producer
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	name       string // of spans
	attributes []attribute.KeyValue
}

// NewProducer returns a Producer that puts records with to. The caller flushes and closes to. It
// returns an error if to is nil.
func NewProducer(to *producer.Producer, o ProducerOptions) (*Producer, error) {
	if to == nil {
		return nil, errors.New("otelweir: NewProducer needs a producer")
	}
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.Propagator == nil {
		o.Propagator = propagation.TraceContext{}
	}
	stream, of := to.Stream(), currentConventions()
	tracer := o.TracerProvider.Tracer(scope, trace.WithSchemaURL(of.schema))
	return &Producer{
		to: to, tracer: tracer, propagator: o.Propagator, name: "send " + stream,
		attributes: append([]attribute.KeyValue{
			operationName.String("send"), operationType.String("send"),
			destination.String(stream), streamName.String(stream),
		}, of.system...),
	}, nil
}

// Put is like [producer.Producer.Put]. It begins a span named "send" followed by the name of the
// stream, adds the context of the span to the record's tags, and ends the span when the record has
// its outcome, before r.Done is called. The span is a child of the span in ctx.
//
// Records that the producer cannot pack lose their tags, and so their trace context; see
// [producer.Record]. Their spans have the attribute "weir.context.dropped".
func (p *Producer) Put(ctx context.Context, r producer.Record) (*producer.Pending, error) {
	return p.put(ctx, r, p.to.Put)
}

// TryPut is like [producer.Producer.TryPut], with a span like that of [Producer.Put].
func (p *Producer) TryPut(ctx context.Context, r producer.Record) (*producer.Pending, error) {
	return p.put(ctx, r, func(_ context.Context, r producer.Record) (*producer.Pending, error) {
		return p.to.TryPut(r)
	})
}

func (p *Producer) put(
	ctx context.Context, r producer.Record, put func(context.Context, producer.Record) (*producer.Pending, error),
) (*producer.Pending, error) {
	ctx, span := p.tracer.Start(ctx, p.name, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(p.attributes...))
	carrier := toTags{r.Tags}
	p.propagator.Inject(ctx, &carrier)
	r.Tags = carrier.tags
	if span.IsRecording() {
		done := r.Done
		r.Done = func(result producer.Result, err error) {
			endSend(span, result, err)
			if done != nil {
				done(result, err)
			}
		}
	}
	pending, err := put(ctx, r)
	if err != nil {
		endSend(span, producer.Result{}, err)
	}
	return pending, err
}

// endSend ends the span of a record.
func endSend(span trace.Span, result producer.Result, err error) {
	if result.Shard != "" {
		span.SetAttributes(partition.String(result.Shard))
	}
	if result.Untagged {
		span.SetAttributes(contextDropped.Bool(true))
	}
	if err != nil {
		span.SetAttributes(errorType.String(typeOfPut(err)))
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// typeOfPut returns the type of the error of a record. Like typeOf, it never returns an error's
// text.
func typeOfPut(err error) string {
	var failed *producer.Error
	if errors.As(err, &failed) && isCode(failed.Code) {
		return failed.Code
	}
	for _, known := range putErrors {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	return typeOf(err)
}

var putErrors = []struct {
	err  error
	name string
}{
	{producer.ErrTooLarge, "too_large"}, {producer.ErrInvalid, "invalid"}, {producer.ErrFull, "full"},
	{producer.ErrExpired, "expired"}, {producer.ErrClosed, "closed"}, {producer.ErrStopped, "stopped"},
	{producer.ErrRefused, "refused"},
}

// toTags is a carrier that appends to the tags of a record.
type toTags struct{ tags aggregate.Tags }

func (c *toTags) Get(key string) string {
	v, _ := c.tags.Get(key)
	return v
}

func (c *toTags) Set(key, value string) { c.tags = c.tags.With(key, value) }

func (c *toTags) Keys() []string { return ofTags{c.tags}.Keys() }
