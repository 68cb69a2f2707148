//go:build unix

package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/benchserver"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// BenchmarkParallel measures what Options.Concurrency costs per record, with a handler that does
// nothing. The cost is the CPU time of the whole consumer with this option, minus the CPU time
// without the option. It is measured for several distributions of keys. For comparison, the
// benchmark sends the key of each record through a channel and counts the key in a map.
//
//	go test -run '^$' -bench 'Parallel$' -benchtime 1x ./internal/proof/bench
func BenchmarkParallel(b *testing.B) {
	const most = 4 // target: at most this many times the cost of a send and a count
	table := &strings.Builder{}
	fmt.Fprintf(table, "\n%-22s %14s %14s %14s %12s %24s %24s\n", "CPU, ns a record", "one by one", "Parallel", "difference", "send+update", "difference ÷ send+update", "more allocations/record")
	for _, keys := range []struct {
		name string
		n    int
		zipf bool
	}{{"1 key", 1, false}, {"100 keys", 100, false}, {"10,000 keys", 10_000, false}, {"10,000 keys, Zipf", 10_000, true}} {
		c := readCase{keys.name, true, 2000, 100, 64, 40, 600, 0, 2}.short()
		config := c.config()
		config.Keys, config.Zipf = keys.n, keys.zipf
		p := serveBench(b, config)
		var plain, beside, sends, allocs []float64
		for range rounds() {
			for _, opts := range []weir.Options{{}, {Concurrency: weir.Concurrency{Keys: 64}}} {
				if err := p.Reset(); err != nil {
					b.Fatal(err)
				}
				s := readDoingNothing(b, benchClient(p.Address), c, opts)
				if opts.Concurrency.Keys == 0 {
					plain, allocs = append(plain, s.perRecord()), append(allocs, -s.allocs())
				} else {
					beside = append(beside, s.perRecord())
					allocs[len(allocs)-1] += s.allocs()
				}
			}
			sends = append(sends, sendAndCount(keys.n))
		}
		for _, all := range [][]float64{plain, beside, sends, allocs} {
			slices.Sort(all)
		}
		mid := len(plain) / 2
		ratio := (beside[mid] - plain[mid]) / sends[mid]
		fmt.Fprintf(table, "%-22s %14.0f %14.0f %14.0f %12.0f %24s %24.3f\n", keys.name, plain[mid], beside[mid], beside[mid]-plain[mid], sends[mid],
			besideTarget(ratio, most), allocs[mid])
		b.ReportMetric(ratio, strings.NewReplacer(" ", "-", ",", "").Replace(keys.name)+"/send+update")
	}
	fmt.Print(table)
	b.ReportMetric(0, "ns/op")
}

// readDoingNothing measures a consumer whose handler does nothing, after the first pages. It uses
// the consumer's own count of handled records.
func readDoingNothing(tb testing.TB, client *kinesis.Client, c readCase, opts weir.Options) spent {
	tb.Helper()
	opts.App, opts.Streams, opts.Logger = "bench", []string{benchserver.Stream}, quiet
	consumer, err := weir.New(client, memstore.New(), opts)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), 2*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- consumer.Run(ctx, weir.HandlerFunc(func(context.Context, *weir.Batch) error { return nil }))
	}()
	reach := func(records int) int64 {
		for {
			if n := consumer.Counts().RecordsHandled; n >= uint64(records) {
				return int64(n)
			}
			if ctx.Err() != nil || len(ended) > 0 {
				tb.Fatalf("Run ended with %v after %d records, or they take too long", <-ended, consumer.Counts().RecordsHandled)
			}
			time.Sleep(time.Millisecond)
		}
	}
	before := reach(c.shards * c.records * max(c.warm, 1))
	stop := meter()
	after := reach(int(before) + c.read*c.records)
	s := stop(after - before)
	cancel()
	if err := <-ended; err != nil {
		tb.Fatal(err)
	}
	all := consumer.Counts()
	c.counted(tb, "weir", int64(all.RecordsHandled), int64(all.BytesHandled))
	return s
}

func besideTarget(figure, target float64) string {
	return strings.TrimSpace(beside("%.1f", figure, target, false))
}

// sendAndCount returns the CPU time in ns for sending a key through a channel and counting it in a
// map.
func sendAndCount(keys int) float64 {
	const n = 2_000_000
	names := make([]string, min(keys, 10_000))
	for i := range names {
		names[i] = fmt.Sprintf("%036d", i)
	}
	stop := meter()
	ch, done := make(chan string, 128), make(chan struct{})
	go func() {
		defer close(done)
		counts := map[string]int{}
		for key := range ch {
			counts[key]++
		}
	}()
	for i := range n {
		ch <- names[i*7%len(names)]
	}
	close(ch)
	<-done
	return stop(n).perRecord()
}

// BenchmarkParallelSlow measures, in virtual time, how long a handler that takes 5 ms per record
// needs for the records of one shard: one by one, and with 64 keys at a time.
//
//	go test -run '^$' -bench ParallelSlow -benchtime 1x ./internal/proof/bench
func BenchmarkParallelSlow(b *testing.B) {
	const records = 6400
	took := map[int]time.Duration{}
	for _, keys := range []int{0, 64} {
		// Virtual time needs a test, so run one here.
		ok := testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: fmt.Sprint(keys), F: func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, err := kinesistest.Start(kinesistest.Config{InMemory: true})
				if err != nil {
					t.Fatal(err)
				}
				defer srv.Close()
				srv.CreateStream("s", 1)
				for i := range records {
					srv.Put("s", fmt.Sprint("key ", i%1000), []byte("x"))
				}
				var n atomic.Int64
				began := time.Now()
				c, err := weir.New(srv.Client(), memstore.New(), weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet, Concurrency: weir.Concurrency{Keys: keys}})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				if err := c.Run(ctx, weir.HandlerFunc(func(_ context.Context, batch *weir.Batch) error {
					time.Sleep(5 * time.Millisecond * time.Duration(len(batch.Records)))
					if n.Add(int64(len(batch.Records))) == records {
						took[keys] = time.Since(began)
						stop()
					}
					return nil
				})); err != nil {
					t.Error(err)
				}
			})
		}}})
		if !ok {
			b.Fatal("it failed")
		}
	}
	fmt.Printf("\n%d records of 1,000 keys in one shard, 5 ms each: one by one %v, 64 keys at a time %v: %.1f times as fast\n",
		records, took[0].Round(10*time.Millisecond), took[64].Round(10*time.Millisecond), float64(took[0])/float64(took[64]))
	b.ReportMetric(float64(took[0])/float64(took[64]), "times-as-fast")
	b.ReportMetric(0, "ns/op")
}
