// Package otelweir exports telemetry of a weir consumer to OpenTelemetry: metrics about reading,
// handling, leases and lag, and a span for each call of the handler. For package producer, it
// creates a span for each record, to which the handler's span links; see [NewProducer].
//
// [New] adds to the consumer's Options.OnEvent. [Telemetry.Handler] wraps its handler.
// [Telemetry.Observe] queries the consumer's shards at each collection of metrics. Names follow
// OpenTelemetry's messaging conventions where a convention exists. Other names begin with "weir.".
//
// Attributes never contain partition keys, sequence numbers, payloads or error texts.
package otelweir

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
)

// scope is the name of the instrumentation scope.
const scope = "github.com/weir-go/weir/otelweir"

// defaultLinks is the default limit of SDKs for the number of a span's links.
const defaultLinks = 128

// Options configures telemetry. The zero value uses the global providers and reads no trace context
// from records.
type Options struct {
	// MeterProvider creates the instruments. The default is the global provider. To disable
	// metrics, use the provider of package metric/noop.
	MeterProvider metric.MeterProvider
	// TracerProvider creates the spans. The default is the global provider. To disable traces, use
	// the provider of package trace/noop.
	TracerProvider trace.TracerProvider
	// Carrier returns the trace context of a record for the links of spans. It returns nil for a
	// record without trace context. [JSON], [Datadog] and [Tags] are built in. Calls are
	// concurrent. Carrier must not keep the record. By default, records are not inspected.
	Carrier func(weir.Record) propagation.TextMapCarrier
	// Propagator reads the carrier. The default is W3C's trace context.
	Propagator propagation.TextMapPropagator
	// MaxLinks is the maximum number of links of a span, from 1 to 10,000. The default is 128. SDKs
	// have their own limit, which is 128 by default.
	MaxLinks int
	// Shards adds the shard's ID as an attribute to the gauges about single shards. Such a series
	// ends with the lease. Without Shards, the gauges report the largest lags of the worker's
	// shards of a stream, and the number of shards in each state.
	Shards bool
	// ReadSpans also creates a span for each read that returned records. These spans have no links
	// to records, because the records are handled later in another span.
	ReadSpans bool
}

// Telemetry is the telemetry of one consumer. It is safe for concurrent use.
type Telemetry struct {
	app, worker string
	perShard    bool
	readSpans   bool
	instruments *instruments
	system      []attribute.KeyValue
	streams     streams
	tracer      trace.Tracer // nil if tracing is off
	links       linker
	wrapped     atomic.Bool // Handler was called; the wrapped handler records its durations
	leading     atomic.Pointer[event.Leading]
}

// New returns telemetry for a consumer with the given options. New replaces consumer.OnEvent by a
// function that calls the previous function, if there is one, and then updates the telemetry. If
// Options.Worker is empty, New sets it to the default of weir.New. New returns an error if a field
// of o is out of range, or if the provider cannot create an instrument.
func New(consumer *weir.Options, o Options) (*Telemetry, error) {
	if consumer == nil {
		return nil, errors.New("otelweir: New needs the options that the consumer is made with")
	}
	if consumer.App == "" {
		return nil, errors.New("otelweir: weir's Options.App is empty: set it before New")
	}
	if o.MaxLinks < 0 || o.MaxLinks > 10_000 {
		return nil, fmt.Errorf("otelweir: Options.MaxLinks is %d, and must be 1 to 10,000, or 0 for %d", o.MaxLinks, defaultLinks)
	}
	if o.MaxLinks == 0 {
		o.MaxLinks = defaultLinks
	}
	if consumer.Worker == "" {
		host, _ := os.Hostname()
		consumer.Worker = fmt.Sprintf("%s-%d", strings.ToValidUTF8(host, "_"), os.Getpid())
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
	of := currentConventions()
	made, err := newInstruments(o.MeterProvider.Meter(scope, metric.WithSchemaURL(of.schema)))
	if err != nil {
		return nil, fmt.Errorf("otelweir: making instruments: %w", err)
	}
	t := &Telemetry{
		app: consumer.App, worker: consumer.Worker, perShard: o.Shards, readSpans: o.ReadSpans,
		instruments: made, system: of.system, links: linker{o.Carrier, o.Propagator, o.MaxLinks},
	}
	if _, off := o.TracerProvider.(nooptrace.TracerProvider); !off {
		t.tracer = o.TracerProvider.Tracer(scope, trace.WithSchemaURL(of.schema))
	}
	consumer.OnEvent = event.Join(consumer.OnEvent, t.onEvent)
	return t, nil
}
