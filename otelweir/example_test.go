package otelweir_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/otelweir"
	"github.com/weir-go/weir/queue"
	"github.com/weir-go/weir/store/memstore"
)

// example allows creating a server outside a test.
type example struct{ testing.TB }

func (example) Helper()                           {}
func (example) Cleanup(func())                    {}
func (example) Fatalf(format string, args ...any) { log.Fatalf(format, args...) }
func (example) Fatal(args ...any)                 { log.Fatal(args...) }

// run runs a worker with telemetry.
func run(ctx context.Context, client *kinesis.Client, store lease.Store, telemetry otelweir.Options, h weir.Handler) error {
	options := weir.Options{Streams: []string{"orders"}, App: "billing", Logger: slog.New(slog.DiscardHandler)}
	t, err := otelweir.New(&options, telemetry) // adds to options.OnEvent
	if err != nil {
		return err
	}
	consumer, err := weir.New(client, store, options)
	if err != nil {
		return err
	}
	stop, err := t.Observe(consumer) // gauges
	if err != nil {
		return err
	}
	return errors.Join(consumer.Run(ctx, t.Handler(h)), stop())
}

func Example() {
	srv := kinesistest.NewServer(example{})
	defer srv.Close()
	srv.CreateStream("orders", 1)
	srv.Put("orders", "customer-7", []byte(`{"item": "espresso", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`))

	reader, spans := metric.NewManualReader(), tracetest.NewSpanRecorder()
	handled, stop := context.WithCancel(context.Background())
	err := run(handled, srv.Client(), memstore.New(), otelweir.Options{
		MeterProvider:  metric.NewMeterProvider(metric.WithReader(reader)),
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
		Carrier:        otelweir.JSON,
	}, weir.HandlerFunc(func(context.Context, *weir.Batch) error {
		stop()
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range spans.Ended() {
		fmt.Println(s.Name(), "of the trace", s.Links()[0].SpanContext.TraceID())
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		log.Fatal(err)
	}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && strings.HasPrefix(m.Name, "weir.handled.") {
			fmt.Println(m.Name, sum.DataPoints[0].Value)
		}
	}
	// Output:
	// process orders of the trace 0af7651916cd43dd8448eb211c80319c
	// weir.handled.records 1
	// weir.handled.bytes 94
}

// ofEnvelope finds the trace context of payloads that begin with a line of headers, a format
// without a built-in carrier.
func ofEnvelope(r weir.Record) propagation.TextMapCarrier {
	head, _, _ := strings.Cut(string(r.Data[:min(len(r.Data), 200)]), "\n")
	parent, is := strings.CutPrefix(head, "traceparent: ")
	if !is {
		return nil
	}
	return propagation.MapCarrier{"traceparent": parent}
}

// pack adds a record with its trace to an aggregate.
func pack(ctx context.Context, to *aggregate.Builder, key string, data []byte) error {
	found := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, found)
	var tags aggregate.Tags
	for k, v := range found {
		tags = tags.With(k, v)
	}
	return to.AddTagged(key, "", data, tags)
}

func ExampleTags() {
	srv := kinesistest.NewServer(example{})
	defer srv.Close()
	srv.CreateStream("orders", 1)

	// This simulates a producer in the middle of a span.
	traced := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	})
	var b aggregate.Builder
	if err := pack(traced, &b, "customer-7", []byte("any data")); err != nil {
		log.Fatal(err)
	}
	srv.Put("orders", "customer-7", b.Append(nil))

	spans := tracetest.NewSpanRecorder()
	handled, stop := context.WithCancel(context.Background())
	err := run(handled, srv.Client(), memstore.New(), otelweir.Options{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
		Carrier:        otelweir.Tags,
	}, weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
		fmt.Printf("%s\n", b.Records[0].Data)
		stop()
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(spans.Ended()[0].Links()[0].SpanContext.TraceID())
	// Output:
	// any data
	// 0af7651916cd43dd8448eb211c80319c
}

func ExampleOptions_carrier() {
	carrier := ofEnvelope(weir.Record{Data: []byte("traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n{}")})
	fmt.Fprintln(os.Stdout, carrier.Get("traceparent"))
	// Output: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
}

// A consumer of a queue has metrics and spans, too.
func ExampleNewQueue() {
	run := func(ctx context.Context, cfg aws.Config, handle queue.RecordFunc) error {
		options := queue.Options{Queue: "orders", App: "billing"}
		telemetry, err := otelweir.NewQueue(&options, otelweir.QueueOptions{Carrier: otelweir.QueueTags})
		if err != nil {
			return err
		}
		consumer, err := queue.New(cfg, options)
		if err != nil {
			return err
		}
		stop, err := telemetry.Observe(consumer)
		if err != nil {
			return err
		}
		defer func() { _ = stop() }()
		return consumer.Run(ctx, telemetry.Records(handle))
	}
	fmt.Println(run != nil, otelweir.QueueTags(queue.Record{}) == nil)
	// Output: true true
}
