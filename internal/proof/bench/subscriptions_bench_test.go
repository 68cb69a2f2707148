//go:build unix

package bench

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/benchserver"
)

// BenchmarkIdleSubscriptions measures the cost of 1,000 fan-out subscriptions with nothing to
// read. They use HTTP/2 over TLS, and each gets an empty event every 5 s. The clients are a
// consumer, a program that discards the bytes of the streams, and a loop with the SDK's client.
// Each client runs in a separate process.
//
//	go test -run '^$' -bench IdleSubscriptions -benchtime 1x ./internal/proof/bench
func BenchmarkIdleSubscriptions(b *testing.B) {
	cfg, length, mostCPU, mostKiB := benchserver.Config{TLS: true, Shards: 1000}, 20*time.Second, 0.1, 64.0
	if testing.Short() {
		cfg.Shards, length, mostCPU, mostKiB = 100, time.Second, 0, 0
	}
	for b.Loop() {
		fmt.Printf("\n%s, %d subscriptions with an empty event every 5 s\n%-18s %8s %22s %8s %8s %22s %11s %12s\n", b.Name(), cfg.Shards,
			"", "% core", "ms/s each", "MB", "peak MB", "KiB each", "goroutines", "connections")
		for _, c := range []struct {
			name             string
			mostCPU, mostKiB float64
		}{{"weir, fan-out", mostCPU, mostKiB}, {"net/http, fan-out", 0, 0}, {"bare SDK, fan-out", 0, 0}} {
			p := serveBench(b, cfg)
			r, s := measureSubscriptions(b, p, clientJob{Client: c.name, Address: p.Address, Shards: cfg.Shards, Length: length})
			_ = p.Close()
			cpu, kib := r.share()*1000/float64(cfg.Shards), (r.Memory-r.Before)*1e6/1024/float64(cfg.Shards)
			fmt.Printf("%-18s %8.1f %s %8.0f %8.0f %s %11d %12d\n", c.name, r.share()*100, beside("%.3f", cpu, c.mostCPU, false), r.Memory, r.Peak,
				beside("%.1f", kib, c.mostKiB, false), r.Goroutines, s.Connections)
			if c.mostKiB > 0 {
				b.ReportMetric(cpu, "ms/s")
				b.ReportMetric(kib, "KiB/subscription")
			}
		}
	}
	b.ReportMetric(0, "ns/op")
}

// measureSubscriptions starts a client, waits until it is subscribed to all shards, and measures
// it.
func measureSubscriptions(b *testing.B, p *benchserver.Process, job clientJob) (clientResult, benchserver.Stats) {
	b.Helper()
	c := startClient(b, job)
	defer c.close()
	for began := time.Now(); serverStats(b, p).Together < job.Shards; time.Sleep(100 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			b.Fatalf("%s has %d of %d subscriptions after a minute", job.Client, serverStats(b, p).Together, job.Shards)
		}
	}
	if err := p.Reset(); err != nil {
		b.Fatal(err)
	}
	r := c.measure(b)
	s := serverStats(b, p)
	if calls := s.Calls["SubscribeToShard"]; calls > job.Shards/10 {
		b.Errorf("%s subscribed %d times during the measurement", job.Client, calls)
	}
	return r, s
}

func runWeirFanOut(job clientJob, ready func() error) (clientResult, error) {
	return runConsumer(job, benchClient(job.Address), weir.FanOut{Mode: weir.FanOutRegister}, ready)
}

// runDroppedEvents discards the bytes of the streams.
func runDroppedEvents(job clientJob, ready func() error) (clientResult, error) {
	client := &http.Client{Transport: benchTransport(job.Address)}
	return runSubscriptions(job, ready, func(shard int) error {
		resp, err := postSubscribe(context.Background(), client, job.Address.URL, shard)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		_, err = copyAway(resp.Body, make([]byte, 1<<10))
		return err
	})
}

// runSDKFanOut receives the events with only the SDK's client.
func runSDKFanOut(job clientJob, ready func() error) (clientResult, error) {
	opts := benchClient(job.Address).Options()
	return runSubscriptions(job, ready, func(shard int) error {
		out, err := kinesis.New(opts).SubscribeToShard(context.Background(), subscribeInput(shard))
		if err != nil {
			return err
		}
		for range out.GetStream().Events() { //nolint:revive // the events are empty
		}
		return out.GetStream().Close()
	})
}

// runSubscriptions subscribes to all shards within a second or two, each in a goroutine.
func runSubscriptions(job clientJob, ready func() error, subscribe func(shard int) error) (r clientResult, err error) {
	r.Before = memory("VmRSS")
	failed := make(chan error, job.Shards)
	for shard := range job.Shards {
		go func() { failed <- subscribe(shard) }() // ends with the process
		time.Sleep(time.Millisecond)
	}
	if err := ready(); err != nil {
		return r, err
	}
	r.observe(job.Length)
	select {
	case err := <-failed:
		return r, fmt.Errorf("a subscription ended: %w", err)
	default:
		return r, nil
	}
}
