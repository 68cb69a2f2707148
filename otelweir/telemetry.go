// Package otelweir tells OpenTelemetry what a consumer of package weir does: metrics of reading,
// handling, leases and lag, and a span for each call of the handler.
//
// [New] adds to the consumer's [weir.Events], [Telemetry.Handler] wraps its handler, and
// [Telemetry.Observe] has the consumer's shards asked whenever metrics are collected. Names follow
// OpenTelemetry's conventions for messaging where there are any, and begin with "weir." otherwise.
//
// No partition key, no sequence number, no payload and no text of an error is ever an attribute.
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

// scope names what made the telemetry.
const scope = "github.com/weir-go/weir/otelweir"

// defaultLinks is what SDKs keep of a span's links unless told otherwise.
const defaultLinks = 128

// Options are what may be chosen. The zero value uses the global providers and reads no trace
// context out of payloads.
type Options struct {
	// MeterProvider makes the instruments. Defaults to the global one; package metric/noop has one
	// that turns metrics off.
	MeterProvider metric.MeterProvider
	// TracerProvider makes the spans. Defaults to the global one; package trace/noop has one that
	// turns traces off.
	TracerProvider trace.TracerProvider
	// Carrier says where a record's trace context is, for the links of spans; nil when it has none.
	// [JSON], [Datadog] and [Tags] are ready ones. It is called by many goroutines, with records of
	// which nothing may be kept. Defaults to none: records are not looked into.
	Carrier func(weir.Record) propagation.TextMapCarrier
	// Propagator reads what Carrier returned. Defaults to W3C's trace context.
	Propagator propagation.TextMapPropagator
	// MaxLinks is how many records a span links to at most, 1 to 10,000. Defaults to 128. What SDKs
	// keep is limited too, to 128 unless told otherwise.
	MaxLinks int
	// Shards has the gauges of single shards carry the shard's ID, as an attribute that goes with
	// the lease. Without it they tell the worst of the worker's shards of a stream.
	Shards bool
	// ReadSpans makes a span of each read that brought records, too. They have no links: what is
	// read is handled later, under a span of its own.
	ReadSpans bool
}

// Telemetry is what one consumer tells. It may be used concurrently.
type Telemetry struct {
	app, worker string
	perShard    bool
	readSpans   bool
	instruments *instruments
	streams     streams
	tracer      trace.Tracer // nil when there are no traces
	links       linker
	wrapped     atomic.Bool // a handler was wrapped, which records its durations
	leading     atomic.Pointer[weir.Leading]
}

// New makes the telemetry of the consumer that is made with consumer's options: it adds to their
// Events, after the functions that are there. Options.Worker is set as weir.New would, if it is
// empty. It fails when something of o is out of range, or the provider refuses an instrument.
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
