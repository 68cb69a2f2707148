package otelweir

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/weir-go/weir/queue"
)

// QueueOptions configures the telemetry of a consumer of a queue. The zero value uses the global
// providers and reads no trace context from records.
type QueueOptions struct {
	// MeterProvider creates the instruments. The default is the global provider.
	MeterProvider metric.MeterProvider
	// TracerProvider creates the spans. The default is the global provider. To disable traces, use
	// the provider of package trace/noop.
	TracerProvider trace.TracerProvider
	// Carrier returns the trace context of a record for the links of spans, or nil. [QueueTags] is
	// built in. Calls are concurrent. By default, records are not inspected.
	Carrier func(queue.Record) propagation.TextMapCarrier
	// Propagator reads the carrier. The default is W3C's trace context.
	Propagator propagation.TextMapPropagator
	// MaxLinks is the maximum number of links of a span, from 1 to 10,000. The default is 128.
	MaxLinks int
}

// QueueTags returns the trace context that a producer added to a record in an aggregate, like
// [Tags]. It returns nil for a record without tags.
func QueueTags(r queue.Record) propagation.TextMapCarrier {
	if r.Tags.IsZero() {
		return nil
	}
	return ofTags{r.Tags}
}

// QueueTelemetry is the telemetry of one consumer of a queue. It is safe for concurrent use.
type QueueTelemetry struct {
	queue, app string
	o          QueueOptions
	meter      metric.Meter
	own        metric.MeasurementOption // the attributes app and queue
	process    []attribute.KeyValue
	tracer     trace.Tracer // nil if tracing is off

	handling, receiving, confirming, processing metric.Float64Histogram
	counters                                    []queueCounter
}

// queueCounter is an instrument that reports a number of the consumer.
type queueCounter struct {
	counter metric.Int64Observable
	of      func(*queue.Counts) int64
	more    metric.MeasurementOption
}

const queueKey = attribute.Key("queue")

// NewQueue returns telemetry for a consumer of a queue with the given options. It adds functions to
// consumer.Events, which measure durations. Call it before [queue.New], and
// [QueueTelemetry.Observe] after it. NewQueue returns an error if a field of o is out of range, or
// if the provider cannot create an instrument.
func NewQueue(consumer *queue.Options, o QueueOptions) (*QueueTelemetry, error) {
	switch {
	case consumer == nil:
		return nil, errors.New("otelweir: NewQueue needs the options that the consumer is made with")
	case consumer.Queue == "":
		return nil, errors.New("otelweir: queue.Options.Queue is empty: set it before NewQueue")
	case o.MaxLinks < 0 || o.MaxLinks > 10_000:
		return nil, fmt.Errorf("otelweir: QueueOptions.MaxLinks is %d, and must be 1 to 10,000, or 0 for %d", o.MaxLinks, defaultLinks)
	}
	if o.MaxLinks == 0 {
		o.MaxLinks = defaultLinks
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.Propagator == nil {
		o.Propagator = propagation.TraceContext{}
	}
	follows := currentConventions()
	t := &QueueTelemetry{queue: consumer.Queue, app: consumer.App, o: o, meter: o.MeterProvider.Meter(scope, metric.WithSchemaURL(follows.schema))}
	if t.app == "" {
		t.app = consumer.Queue
	}
	t.own = metric.WithAttributeSet(attribute.NewSet(appKey.String(t.app), queueKey.String(t.queue)))
	t.process = append(slices.Clone(follows.system),
		operationName.String("process"), operationType.String("process"), destination.String(t.queue), group.String(t.app),
	)
	if _, off := o.TracerProvider.(nooptrace.TracerProvider); !off {
		t.tracer = o.TracerProvider.Tracer(scope, trace.WithSchemaURL(follows.schema))
	}
	if err := t.instruments(); err != nil {
		return nil, fmt.Errorf("otelweir: making instruments: %w", err)
	}
	consumer.Events = queue.JoinEvents(queue.Events{
		Handled: func(ctx context.Context, e queue.Handled) { t.handled(ctx, e) },
		Received: func(ctx context.Context, e queue.Received) {
			if e.Records > 0 {
				t.receiving.Record(ctx, e.Took.Seconds(), t.own)
			}
		},
		Acknowledged: func(ctx context.Context, e queue.Acknowledged) { t.confirming.Record(ctx, e.Took.Seconds(), t.own) },
	}, consumer.Events)
	return t, nil
}

// instruments makes the instruments.
func (t *QueueTelemetry) instruments() error {
	m := maker{meter: t.meter}
	t.processing = m.histogram("messaging.process.duration", "Duration of calls of the handler.")
	t.handling = m.histogram("weir.queue.handler.duration", "Duration of calls of the handler.")
	t.receiving = m.histogram("weir.queue.receive.duration", "Duration of receives that returned records.")
	t.confirming = m.histogram("weir.queue.acknowledge.duration", "Duration of calls that acknowledge records.")
	counter := func(name, unit, what string, of func(*queue.Counts) int64) {
		t.counters = append(t.counters, queueCounter{m.observedCounter(name, unit, what), of, t.own})
	}
	counter("weir.queue.received.records", "{record}", "Deliveries of records or aggregates.", func(n *queue.Counts) int64 { return int64(n.Received) })
	counter("weir.queue.redelivered.records", "{record}", "Deliveries of records that this process still had, or had before.", func(n *queue.Counts) int64 { return int64(n.Redelivered) })
	counter("weir.queue.filtered.records", "{record}", "Records dropped by the filter.", func(n *queue.Counts) int64 { return int64(n.Filtered) })
	counter("weir.queue.handled.records", "{record}", "Records handled. Those of an aggregate count one by one.", func(n *queue.Counts) int64 { return int64(n.Handled) })
	counter("weir.queue.failed.records", "{record}", "Records in failed calls of the handler.", func(n *queue.Counts) int64 { return int64(n.Failed) })
	counter("weir.queue.acknowledged.records", "{record}", "Deliveries that were acknowledged.", func(n *queue.Counts) int64 { return int64(n.Acknowledged) })
	counter("weir.queue.unacknowledged.records", "{record}", "Deliveries whose acknowledgement was refused for good.", func(n *queue.Counts) int64 { return int64(n.NotAcknowledged) })
	counter("weir.queue.set_aside.records", "{record}", "Records that were dead-lettered, or left to the dead letters of the queue.", func(n *queue.Counts) int64 { return int64(n.SetAside) })
	counter("weir.queue.released.records", "{record}", "Deliveries that were made visible again.", func(n *queue.Counts) int64 { return int64(n.Released) })
	counter("weir.queue.extended.holds", "{hold}", "Extensions of holds.", func(n *queue.Counts) int64 { return int64(n.Extended) })
	counter("weir.queue.lost.holds", "{hold}", "Holds that were lost.", func(n *queue.Counts) int64 { return int64(n.HoldsLost) })
	counter("weir.queue.spent.receives", "{receive}", "Receive counts that were spent without a failure of the handler.", func(n *queue.Counts) int64 { return int64(n.Spent) })
	results := m.observedCounter("weir.queue.receives", "{call}", "Receives by result.")
	calls := m.observedCounter("weir.queue.calls", "{call}", "Calls of the service.")
	by := func(counter metric.Int64Observable, key, value string, of func(*queue.Counts) int64) {
		more := metric.WithAttributeSet(attribute.NewSet(appKey.String(t.app), queueKey.String(t.queue), attribute.String(key, value)))
		t.counters = append(t.counters, queueCounter{counter, of, more})
	}
	by(results, "result", "records", func(n *queue.Counts) int64 { return int64(n.Receives - n.EmptyReceives - n.FailedReceives) })
	by(results, "result", "empty", func(n *queue.Counts) int64 { return int64(n.EmptyReceives) })
	by(results, "result", "failed", func(n *queue.Counts) int64 { return int64(n.FailedReceives) })
	by(calls, "call", "receive", func(n *queue.Counts) int64 { return int64(n.Receives) })
	by(calls, "call", "acknowledge", func(n *queue.Counts) int64 { return int64(n.AckCalls) })
	by(calls, "call", "visibility", func(n *queue.Counts) int64 { return int64(n.VisibilityCalls) })
	gauge := func(name, unit, what string, of func(*queue.Counts) int64) {
		t.counters = append(t.counters, queueCounter{m.gauge(name, unit, what), of, t.own})
	}
	gauge("weir.queue.in_flight.records", "{record}", "Deliveries that this process has.", func(n *queue.Counts) int64 { return int64(n.InFlight) })
	gauge("weir.queue.handler.calls", "{call}", "Calls of the handler that are running.", func(n *queue.Counts) int64 { return int64(n.Handling) })
	gauge("weir.queue.buffered", "By", "Bytes of data in memory.", func(n *queue.Counts) int64 { return n.Bytes })
	return errors.Join(m.failed...)
}

// Observe makes the instruments report the numbers of c at each collection of metrics, until stop
// is called. c must be created with the options that were passed to [NewQueue].
func (t *QueueTelemetry) Observe(c *queue.Consumer) (stop func() error, err error) {
	if c == nil {
		return nil, errors.New("otelweir: Observe needs a consumer")
	}
	var all []metric.Observable
	for _, counter := range t.counters {
		all = append(all, counter.counter)
	}
	registered, err := t.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		n := c.Counts()
		for _, counter := range t.counters {
			o.ObserveInt64(counter.counter, counter.of(&n), counter.more)
		}
		return nil
	}, all...)
	if err != nil {
		return nil, fmt.Errorf("otelweir: registering instruments: %w", err)
	}
	return registered.Unregister, nil
}

// handled records a call of the handler.
func (t *QueueTelemetry) handled(ctx context.Context, e queue.Handled) {
	t.handling.Record(ctx, e.Took.Seconds(), t.own)
	attributes := t.process
	if e.Err != nil {
		attributes = append(attributes[:len(attributes):len(attributes)], errorType.String(typeOf(e.Err)))
	}
	t.processing.Record(ctx, e.Took.Seconds(), metric.WithAttributes(attributes...))
}

// Records wraps a function that handles one record. Each call gets a span of the kind consumer,
// named "process" followed by the queue, with a link to the span of the record; see
// [QueueOptions].Carrier. The context for next contains the span.
func (t *QueueTelemetry) Records(next queue.RecordFunc) queue.RecordFunc {
	if t.tracer == nil {
		return next
	}
	return func(ctx context.Context, r queue.Record) error {
		return t.call(ctx, []queue.Record{r}, func(ctx context.Context) error { return next(ctx, r) })
	}
}

// Batches wraps a function that handles several records, like [QueueTelemetry.Records]. Each call
// gets a span.
func (t *QueueTelemetry) Batches(next queue.BatchFunc) queue.BatchFunc {
	if t.tracer == nil {
		return next
	}
	return func(ctx context.Context, records []queue.Record) error {
		return t.call(ctx, records, func(ctx context.Context) error { return next(ctx, records) })
	}
}

// call calls a handler in a span.
func (t *QueueTelemetry) call(ctx context.Context, records []queue.Record, next func(context.Context) error) (err error) {
	attributes := append(t.process[:len(t.process):len(t.process)], messageCount.Int(len(records)))
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attributes...)}
	if t.o.Carrier != nil {
		options = append(options, trace.WithLinks(links(len(records), t.o.MaxLinks, t.o.Propagator, func(i int) propagation.TextMapCarrier { return t.o.Carrier(records[i]) })...))
	}
	ctx, span := t.tracer.Start(ctx, "process "+t.queue, options...)
	returned := false
	defer func() { finish(span, outcome(err, returned)) }()
	err = next(ctx)
	returned = true
	return err
}
