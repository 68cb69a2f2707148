package otelweir

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
)

// BenchmarkRecord measures the cost of telemetry for a record. It calls the handler and the events
// of one batch like a worker. "records" has a span for each record. "links" reads trace context
// from the payloads of up to 128 records per batch.
func BenchmarkRecord(b *testing.B) {
	metrics := func() Options {
		return Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())), TracerProvider: nooptrace.NewTracerProvider()}
	}
	traces := func() Options {
		o := metrics()
		o.TracerProvider = sdktrace.NewTracerProvider()
		return o
	}
	links := func() Options {
		o := traces()
		o.Carrier = JSON
		return o
	}
	silent := func() Options {
		return Options{MeterProvider: noop.NewMeterProvider(), TracerProvider: nooptrace.NewTracerProvider()}
	}
	one := weir.RecordFunc(func(context.Context, weir.Record) error { return nil })
	for _, records := range []int{1, 100, 1000} {
		for _, mode := range []struct {
			name     string
			o        func() Options // nil means a handler without telemetry
			byRecord bool
		}{{"off", nil, false}, {"noop", silent, false}, {"metrics", metrics, false}, {"traces", traces, false}, {"links", links, false}, {"records", links, true}} {
			b.Run(fmt.Sprintf("batch=%d/%s", records, mode.name), func(b *testing.B) {
				benchmarkRecord(b, records, mode.o, mode.byRecord, one)
			})
		}
	}
}

func benchmarkRecord(b *testing.B, records int, mode func() Options, byRecord bool, one weir.RecordFunc) {
	batch := weir.Batch{Stream: "orders", Shard: "shardId-000000000000", Epoch: 1, Attempt: 1}
	for range records {
		r := linked(len(batch.Records) + 1)
		r.SequenceNumber = "49590338271490256608559692538361571095921575989136588898"
		batch.Records = append(batch.Records, r)
	}
	var h weir.Handler = one
	onEvent := func(context.Context, event.Event) {}
	if mode != nil {
		options := weir.Options{App: "billing", Worker: "w1"}
		t, err := New(&options, mode())
		if err != nil {
			b.Fatal(err)
		}
		onEvent = options.OnEvent
		if h = t.Handler(one); byRecord {
			h = t.Records(one)
		}
	}
	ctx := context.Background()
	now := time.Now()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	for range b.N {
		onEvent(ctx, event.Read{
			Time: now, Stream: batch.Stream, Shard: batch.Shard,
			Records: records, Bytes: 100 * records, Took: time.Millisecond,
		})
		if err := h.Handle(ctx, &batch); err != nil {
			b.Fatal(err)
		}
		onEvent(ctx, event.BatchHandled{
			Time: now, Stream: batch.Stream, Shard: batch.Shard,
			Records: records, Bytes: 100 * records, Took: time.Millisecond,
		})
	}
	b.StopTimer()
	runtime.ReadMemStats(&after)
	n := float64(b.N) * float64(records)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/record")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/record")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/record")
}
