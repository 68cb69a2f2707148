//go:build unix

package bench

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/benchserver"
	"github.com/weir-go/weir/store/memstore"
)

// BenchmarkPaced measures the cost of a worker with little to do. The worker reads a few shards of
// a live stream. The limits of the service and weir's idle interval determine its pace. Two other
// programs make the same calls at the same times: a loop that receives and discards answers, and a
// loop with the bare SDK. So each program pays for a wake-up and cold caches with each read.
//
//	go test -run '^$' -bench Paced -benchtime 1x ./internal/proof/bench
func BenchmarkPaced(b *testing.B) {
	for _, c := range []readCase{
		{name: "TLS/1KiBx1000", tls: true, records: 1000, bytes: 1024, shards: 64, pages: 40},
		{name: "TLS/1KiBx10", tls: true, records: 10, bytes: 1024, shards: 64, pages: 200},
	} {
		b.Run(c.name, func(b *testing.B) {
			measured := map[string][]spent{}
			for b.Loop() {
				cfg := c.config()
				cfg.Live, cfg.Log = true, true
				p := serveBench(b, cfg)
				s, reads := paced(b, p, c)
				measured["weir, reused buffers"] = append(measured["weir, reused buffers"], s)
				measured[limitMode] = append(measured[limitMode], again(b, c, reads, drop(p.Address, c)))
				measured[sdkMode] = append(measured[sdkMode], again(b, c, reads, bareSDK(benchClient(p.Address), c.records)))
			}
			printTable(b, []mode{{name: limitMode}, {name: sdkMode}, {name: "weir, reused buffers"}}, measured)
		})
	}
}

// paced runs a consumer for some seconds. It returns the cost and the reads that the consumer made.
func paced(b *testing.B, p *benchserver.Process, c readCase) (spent, []benchserver.Read) {
	length := 8 * time.Second
	if testing.Short() {
		length = time.Second
	}
	opts := reuse
	opts.App, opts.Streams, opts.Logger = "bench", []string{benchserver.Stream}, quiet
	consumer, err := weir.New(benchClient(p.Address), memstore.New(), opts)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var records atomic.Int64
	ended := make(chan error, 1)
	go func() {
		ended <- consumer.Run(ctx, weir.HandlerFunc(func(_ context.Context, batch *weir.Batch) error {
			records.Add(int64(len(batch.Records)))
			return nil
		}))
	}()
	for serverStats(b, p).Fewest < 2 {
		time.Sleep(50 * time.Millisecond)
	}
	runtime.GC()
	if err := p.Reset(); err != nil {
		b.Fatal(err)
	}
	began := records.Load()
	stop := meter()
	time.Sleep(length)
	s := stop(records.Load() - began)
	reads := serverStats(b, p).Reads
	cancel()
	if err := <-ended; err != nil || s.records == 0 {
		b.Fatalf("%d records, %v", s.records, err)
	}
	return s, reads
}

// again makes the same reads at the same times, with a goroutine for each shard.
func again(b *testing.B, c readCase, reads []benchserver.Read, read pageReader) spent {
	shards := make([][]benchserver.Read, c.shards)
	for _, r := range reads {
		shards[r.Shard] = append(shards[r.Shard], r)
	}
	for i := range readers { // opens the connections
		if _, _, err := read(b.Context(), i, 0); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
	var records atomic.Int64
	var group sync.WaitGroup
	stop, began := meter(), time.Now()
	for _, reads := range shards {
		group.Go(func() {
			for _, r := range reads {
				time.Sleep(time.Until(began.Add(r.At)))
				n, _, err := read(b.Context(), r.Shard, r.From)
				if err != nil {
					b.Error(err)
					return
				}
				records.Add(int64(n))
			}
		})
	}
	group.Wait()
	return stop(records.Load())
}
