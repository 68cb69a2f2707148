package promweir_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/promweir"
	"github.com/weir-go/weir/store/memstore"
)

// BenchmarkMetrics measures the cost of a record with and without metrics, in batches of one record
// and of many. It uses fan-out, because polling would add pauses. All results include the embedded
// server.
func BenchmarkMetrics(b *testing.B) {
	for _, batch := range []int{1, 500} {
		for _, on := range []bool{false, true} {
			b.Run(fmt.Sprintf("batch=%d/on=%v", batch, on), func(b *testing.B) {
				const records = 5_000
				b.ReportAllocs()
				for range b.N {
					b.StopTimer()
					consume(b, records, batch, on)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*records), "ns/record")
			})
		}
	}
}

// consume handles all records of a new stream. The timer runs from the first record to the last.
func consume(b *testing.B, records, batch int, on bool) {
	srv, err := kinesistest.Start(kinesistest.Config{InMemory: true})
	if err != nil {
		b.Fatal(err)
	}
	defer srv.Close()
	srv.CreateStream("s", 1)
	for i := range records {
		srv.Put("s", fmt.Sprint(i), []byte("some data of a record"))
	}
	options := weir.Options{App: "a", Streams: []string{"s"}, Batching: weir.Batching{MaxRecords: batch}, FanOut: weir.FanOut{Mode: weir.FanOutRegister}, Logger: slog.New(slog.DiscardHandler)}
	var m *promweir.Metrics
	if on {
		m = promweir.New(&options, promweir.Config{ShardLabel: true})
	}
	c, err := weir.New(srv.Client(), memstore.New(), options)
	if err != nil {
		b.Fatal(err)
	}
	if on {
		m.Watch(c)
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var handled atomic.Int64
	err = c.Run(ctx, weir.HandlerFunc(func(_ context.Context, got *weir.Batch) error {
		if handled.Load() == 0 {
			b.StartTimer()
		}
		if handled.Add(int64(len(got.Records))) >= int64(records) {
			b.StopTimer()
			cancel()
		}
		return nil
	}))
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkEvents measures the cost of metrics for a batch, in the goroutine that calls the events.
func BenchmarkEvents(b *testing.B) {
	options := weir.Options{App: "a"}
	promweir.New(&options, promweir.Config{ShardLabel: true})
	on := options.OnEvent
	on(b.Context(), event.LeaseTaken{Stream: "s", Shard: "0"})
	b.ReportAllocs()
	for b.Loop() {
		on(b.Context(), event.BatchHandled{
			Stream: "s", Shard: "0", Records: 1, Bytes: 100, Took: 1e6,
		})
	}
}

// BenchmarkScrape measures the cost of a scrape for a consumer without shards.
func BenchmarkScrape(b *testing.B) {
	options := weir.Options{App: "a"}
	m := promweir.New(&options, promweir.Config{ShardLabel: true})
	options.OnEvent(b.Context(), event.LeaseTaken{Stream: "s", Shard: "0"})
	b.ReportAllocs()
	for b.Loop() {
		ch := make(chan prometheus.Metric, 256)
		m.Collect(ch)
	}
}
