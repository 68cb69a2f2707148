//go:build unix

package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/proof/benchserver"
	"github.com/weir-go/weir/store/memstore"
)

// clients contains the clients that can run in a separate process. A client calls ready when it
// runs. It starts to measure when ready returns.
var clients = map[string]func(job clientJob, ready func() error) (clientResult, error){
	"weir": runWeir, overNetHTTPMode: runWeirOverNetHTTP, "bare SDK": runSDKLoop, "large pages": runLargePages, "large pages by the SDK": runLargePagesSDK,
	"weir, fan-out": runWeirFanOut, "net/http, fan-out": runDroppedEvents, "bare SDK, fan-out": runSDKFanOut,
}

const overNetHTTPMode = "weir, net/http"

// BenchmarkIdleShards measures the cost of many shards with nothing to read, each polled once a
// second over TLS. The clients are a consumer, a consumer over net/http, and a loop with the SDK's
// client, with a goroutine and a ticker for each shard. Each client runs in a separate process.
//
//	go test -run '^$' -bench IdleShards -benchtime 1x ./internal/proof/bench
func BenchmarkIdleShards(b *testing.B) {
	sizes := []int{200, 1000, 10_000}
	if testing.Short() {
		sizes = sizes[1:2]
	}
	for _, shards := range sizes {
		b.Run(fmt.Sprint(shards), func(b *testing.B) {
			cfg := benchserver.Config{TLS: true, Shards: shards}
			for b.Loop() {
				fmt.Printf("\n%s, each polled once a second\n", b.Name())
				heading()
				own := measureShards(b, cfg, "weir", 12*time.Second)
				plain := measureShards(b, cfg, overNetHTTPMode, 12*time.Second)
				bare := measureShards(b, cfg, sdkMode, 8*time.Second)
				// Compare the cost per read, because a loop that saturates the machine makes less
				// than one read a second.
				ratio, least, most := bare.perRead/own.perRead, 0.0, 0.0
				if shards == 10_000 {
					least, most = 5, 100
				}
				fmt.Printf("bare SDK ÷ weir, CPU time a read: %s; weir's memory: %s\n", strings.TrimSpace(beside("%.1f", ratio, least, true)),
					strings.TrimSpace(beside("%.0f MB", own.Memory, most, false)))
				fmt.Printf("weir over net/http ÷ weir, CPU time a read: %.2f\n", plain.perRead/own.perRead)
				b.ReportMetric(ratio, "sdk/weir")
				b.ReportMetric(plain.perRead/own.perRead, "net/http/weir")
				b.ReportMetric(own.share()*100, "%cpu")
				b.ReportMetric(own.Memory, "MB")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkBusyShards reads 1,000 shards in one process. All shards have a backlog, with a hundred
// records per page. Each shard is read five times a second, as often as the service allows.
//
//	go test -run '^$' -bench BusyShards -benchtime 1x ./internal/proof/bench
func BenchmarkBusyShards(b *testing.B) {
	cfg := benchserver.Config{TLS: true, Shards: 1000, Records: 100 * 400, Page: 100, Bytes: 1024}
	for b.Loop() {
		fmt.Printf("\n%s, %d shards that are all behind, pages of 100 records of 1 KiB\n", b.Name(), cfg.Shards)
		heading()
		r := measureShards(b, cfg, "weir", 10*time.Second)
		fmt.Printf("%.0f records and %.0f MB of data a second, %.0f ns a record\n", float64(r.Records)/r.Length.Seconds(),
			float64(r.Data)/1e6/r.Length.Seconds(), float64(r.CPU)/float64(r.Records))
		b.ReportMetric(float64(r.CPU)/float64(r.Records), "ns/record")
		b.ReportMetric(r.share()*100, "%cpu")
		b.ReportMetric(r.Memory, "MB")
	}
	b.ReportMetric(0, "ns/op")
}

// shardsResult is the cost of a client that reads many shards.
type shardsResult struct {
	clientResult
	perRead float64 // in µs
}

// share returns the CPU time as a fraction of one core.
func (r clientResult) share() float64 { return float64(r.CPU) / float64(r.Length) }

func heading() {
	fmt.Printf("%-14s %7s %8s %10s %7s %8s %9s %11s %6s %14s %12s %12s\n", "", "% core", "µs/read", "goroutines", "MB", "peak MB",
		"KB/shard", "connections", "reads", "reads/s·shard", "most/100ms", "start/100ms")
}

// measureShards starts a client, waits for its first reads, measures it, and prints a line.
func measureShards(b *testing.B, cfg benchserver.Config, client string, length time.Duration) shardsResult {
	if testing.Short() {
		length = time.Second
	}
	p := serveBench(b, cfg)
	c := startClient(b, clientJob{Client: client, Address: p.Address, Shards: cfg.Shards, Length: length})
	// Wait until the client has read each shard twice. A client that is too slow never does, so the
	// wait is limited.
	for began := time.Now(); serverStats(b, p).Fewest < 2 && time.Since(began) < 15*time.Second; {
		time.Sleep(100 * time.Millisecond)
	}
	start := serverStats(b, p)
	if err := p.Reset(); err != nil {
		b.Fatal(err)
	}
	r := c.measure(b)
	s := serverStats(b, p)
	reads := s.Calls["GetRecords"]
	seconds := s.Length.Seconds()
	perRead := r.share() * 1e6 * seconds / float64(max(1, reads))
	fmt.Printf("%-14s %7.1f %8.0f %10d %7.0f %8.0f %9.1f %11d %6d %5.2f to %5.2f %4d of %5.0f %12d\n", client, r.share()*100,
		perRead, r.Goroutines, r.Memory, r.Peak,
		(r.Memory-r.Before)*1000/float64(cfg.Shards), s.Connections, reads, float64(s.Fewest)/seconds, float64(s.Most)/seconds,
		s.Burst, float64(s.Requests())/seconds/10, start.Burst)
	if want := seconds * float64(cfg.Shards) * 0.8; float64(reads) < want {
		fmt.Printf("%-14s did not keep up: the machine was busy, or this alone was too much for it\n", "")
	}
	c.close()
	_ = p.Close()
	return shardsResult{r, perRead}
}

// runWeir runs a consumer of all shards.
func runWeir(job clientJob, ready func() error) (clientResult, error) {
	return runConsumer(job, benchClient(job.Address), weir.FanOut{}, ready)
}

func runWeirOverNetHTTP(job clientJob, ready func() error) (clientResult, error) {
	return runConsumer(job, benchClient(job.Address, overNetHTTP), weir.FanOut{}, ready)
}

func runConsumer(job clientJob, client *kinesis.Client, fanOut weir.FanOut, ready func() error) (r clientResult, err error) {
	r.Before = memory("VmRSS")
	var held, records, data atomic.Int64
	all := make(chan struct{})
	c, err := weir.New(client, memstore.New(), weir.Options{
		App: "bench", Streams: []string{benchserver.Stream}, Logger: quiet, ReuseBuffers: true, FanOut: fanOut,
		OnEvent: event.On(func(context.Context, event.LeaseTaken) {
			if held.Add(1) == int64(job.Shards) {
				close(all)
			}
		}),
	})
	if err != nil {
		return r, err
	}
	ended := make(chan error, 1)
	go func() { // ends with the process
		ended <- c.Run(context.Background(), weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
			sum := 0
			for i := range b.Records {
				sum += len(b.Records[i].Data)
			}
			records.Add(int64(len(b.Records)))
			data.Add(int64(sum))
			return nil
		}))
	}()
	<-all
	if err := ready(); err != nil {
		return r, err
	}
	r.StartCPU = cpuTime()
	before, beforeData := records.Load(), data.Load()
	r.observe(job.Length)
	r.Records, r.Data = records.Load()-before, data.Load()-beforeData
	select {
	case err := <-ended:
		return r, fmt.Errorf("Run returned %w while there was more to do", err)
	default:
		return r, nil
	}
}

// observe measures the process for some time.
func (r *clientResult) observe(length time.Duration) {
	began, cpu := time.Now(), cpuTime()
	time.Sleep(length)
	r.Length, r.CPU = time.Since(began), cpuTime()-cpu
	r.Goroutines, r.Memory, r.Peak = runtime.NumGoroutine(), memory("VmRSS"), memory("VmHWM")
}

// runSDKLoop runs a goroutine and a ticker for each shard. The tickers start at different times
// within a second, or within half a millisecond per shard if that is longer. Otherwise the loop
// could not handle the TLS handshakes.
func runSDKLoop(job clientJob, ready func() error) (r clientResult, err error) {
	r.Before = memory("VmRSS")
	client := benchClient(job.Address)
	for shard := range job.Shards {
		go func() { // ends with the process
			time.Sleep(rand.N(max(time.Second, time.Duration(job.Shards)*time.Millisecond/2)))
			ticker := time.NewTicker(time.Second)
			iterator := benchserver.Iterator(shard, 0)
			for ; ; <-ticker.C {
				out, err := client.GetRecords(context.Background(), &kinesis.GetRecordsInput{ShardIterator: &iterator, Limit: aws.Int32(10_000)})
				if err == nil {
					iterator = *out.NextShardIterator
				}
			}
		}()
	}
	if err := ready(); err != nil {
		return r, err
	}
	r.StartCPU = cpuTime()
	r.observe(job.Length)
	return r, nil
}
