//go:build unix

package weir_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/store/memstore"
)

// BenchmarkIdleShards holds many shards with nothing to read, each polled once a second over TLS by one consumer, and
// prints what that costs this process: CPU time, goroutines, memory.
//
//	go test -run '^$' -bench IdleShards -benchtime 1x .
func BenchmarkIdleShards(b *testing.B) {
	for _, shards := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(shards), func(b *testing.B) {
			s := startBenchServer(b, true)
			client := s.client()
			if _, err := client.CreateStream(b.Context(), &kinesis.CreateStreamInput{StreamName: &s.stream, ShardCount: aws.Int32(int32(shards))}); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				idle(b, s, client, shards)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func idle(b *testing.B, s *benchServer, client *kinesis.Client, shards int) {
	var held atomic.Int64
	all := make(chan struct{})
	c, err := weir.New(client, memstore.New(), weir.Options{App: "bench", Stream: s.stream, Logger: quiet, Events: weir.Events{
		LeaseTaken: func(weir.LeaseTaken) {
			if held.Add(1) == int64(shards) {
				close(all)
			}
		},
	}})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	began, cpu := time.Now(), cpuTime(b)
	go func() {
		done <- c.Run(ctx, weir.HandlerFunc(func(context.Context, *weir.Batch) error { return nil }))
	}()
	<-all
	time.Sleep(5 * time.Second) // every shard has its iterator
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(time.Since(began))*100, "start-%cpu")
	const length = 15 * time.Second
	began, cpu = time.Now(), cpuTime(b)
	time.Sleep(length)
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(time.Since(began))*100, "%cpu")
	b.ReportMetric(float64(runtime.NumGoroutine()), "goroutines")
	b.ReportMetric(resident(b), "MB")
	cancel()
	if err := <-done; err != nil {
		b.Error(err)
	}
}

// resident is the memory of this process in MB, where the system says it.
func resident(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		var kb float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kb); n == 1 {
			return kb / 1000
		}
	}
	b.Log("the system does not say how much memory the process has")
	return 0
}
