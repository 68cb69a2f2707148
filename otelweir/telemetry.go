// Package otelweir exports telemetry of a weir consumer to OpenTelemetry: metrics of reading,
// handling, leases and lag, and a span for each call of the handler.
//
// [New] wraps the consumer's [weir.Events], [Telemetry.Handler] wraps its handler, and
// [Telemetry.Observe] queries the consumer's shards whenever metrics are collected. Names follow
// OpenTelemetry's conventions for messaging where they exist, and begin with "weir." otherwise.
//
// Partition keys, sequence numbers, payloads and error texts are never attributes.
package otelweir

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/weir-go/weir"
)

// scope is the name of the instrumentation scope.
const scope = "github.com/weir-go/weir/otelweir"

// defaultLinks is the default limit of SDKs for a span's links.
const defaultLinks = 128

// Options configures telemetry. The zero value uses the global providers and reads no trace context
// from payloads.
type Options struct {
	// MeterProvider creates the instruments. Defaults to the global one; package metric/noop has
	// one that disables metrics.
	MeterProvider metric.MeterProvider
	// TracerProvider creates the spans. Defaults to the global one; package trace/noop has one that
	// disables traces.
	TracerProvider trace.TracerProvider
	// Carrier returns a record's trace context, for the links of spans; nil if it has none. [JSON],
	// [Datadog] and [Tags] are built in. Calls are concurrent, and must not keep the records.
	// Defaults to none: records are not inspected.
	Carrier func(weir.Record) propagation.TextMapCarrier
	// Propagator reads the carrier. Defaults to W3C's trace context.
	Propagator propagation.TextMapPropagator
	// MaxLinks limits the links of a span, 1 to 10,000. Defaults to 128. SDKs have a limit too, 128
	// by default.
	MaxLinks int
	// Shards adds the shard's ID to the gauges of single shards, as an attribute that ends with the
	// lease. Without it they report the worst of the worker's shards of a stream.
	Shards bool
	// ReadSpans also creates a span for each read that returned records. These spans have no links:
	// the records are handled later, under a separate span.
	ReadSpans bool
}

// Telemetry is the telemetry of one consumer. It is safe for concurrent use.
type Telemetry struct {
	app, worker string
	perShard    bool
	readSpans   bool
	instruments *instruments
	streams     streams
	tracer      trace.Tracer // nil if tracing is off
	links       linker
	wrapped     atomic.Bool // a handler was wrapped; it records its durations
	leading     atomic.Pointer[weir.Leading]
}

// New returns telemetry for a consumer with the given options. It adds to their Events, after
// existing functions. If Options.Worker is empty, New sets it to the default of weir.New. It
// returns an error if a field of o is out of range, or the provider refuses an instrument.
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
	made, err := newInstruments(o.MeterProvider.Meter(scope))
	if err != nil {
		return nil, fmt.Errorf("otelweir: making instruments: %w", err)
	}
	t := &Telemetry{
		app: consumer.App, worker: consumer.Worker, perShard: o.Shards, readSpans: o.ReadSpans,
		instruments: made, links: linker{o.Carrier, o.Propagator, o.MaxLinks},
	}
	if _, off := o.TracerProvider.(nooptrace.TracerProvider); !off {
		t.tracer = o.TracerProvider.Tracer(scope)
	}
	consumer.Events = consumer.Events.Then(t.events())
	return t, nil
}
