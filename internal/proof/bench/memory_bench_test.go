//go:build unix

package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/benchserver"
	"github.com/weir-go/weir/store/memstore"
)

// BenchmarkLargePages measures the peak of memory while many answers of GetRecords of 10 MB each
// are in progress. They come from many shards over TLS, slowly enough that all are in progress at
// once. The result is the largest resident size of a client in a separate process, minus its size
// before.
//
//	go test -run '^$' -bench LargePages -benchtime 1x ./internal/proof/bench
func BenchmarkLargePages(b *testing.B) {
	const records, shards = 10_000, 32
	for b.Loop() {
		fmt.Printf("\n%s, %d shards, a page of %d records of 1 KiB each\n%-12s %8s %10s %14s %20s\n", b.Name(), shards, records, "", "seconds", "peak MB",
			"pages at once", "MiB/page in flight")
		for _, c := range []struct {
			name, client string
			target       float64
		}{{"weir", "large pages", 2}, {"bare SDK", "large pages by the SDK", 0}} {
			p := serveBench(b, benchserver.Config{TLS: true, Shards: shards, Records: records, Page: records, Bytes: 1024, Pause: 5 * time.Millisecond})
			r := startClient(b, clientJob{Client: c.client, Address: p.Address, Shards: shards}).measure(b)
			if r.Records != records*shards || r.Data != r.Records*1024 {
				b.Fatalf("%s read %d records of %d bytes", c.name, r.Records, r.Data)
			}
			s := serverStats(b, p)
			each := (r.Peak - r.Before) * 1e6 / (1 << 20) / float64(s.Together)
			fmt.Printf("%-12s %8.1f %10.0f %14d %s\n", c.name, r.Length.Seconds(), r.Peak, s.Together, beside("%.1f", each, c.target, false))
			if c.target > 0 {
				b.ReportMetric(each, "MiB/page")
			}
			_ = p.Close()
		}
	}
	b.ReportMetric(0, "ns/op")
}

func runLargePages(job clientJob, ready func() error) (r clientResult, err error) {
	if err := ready(); err != nil {
		return r, err
	}
	client := benchClient(job.Address)
	r.Before = memory("VmRSS")
	var records, data atomic.Int64
	c, err := weir.New(client, memstore.New(), weir.Options{App: "bench", Streams: []string{benchserver.Stream}, Logger: quiet, ReuseBuffers: true})
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	began := time.Now()
	err = c.Run(ctx, weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
		for i := range b.Records {
			data.Add(int64(len(b.Records[i].Data)))
		}
		if records.Add(int64(len(b.Records))) >= int64(job.Shards)*10_000 {
			r.Length = time.Since(began)
			cancel()
		}
		return nil
	}))
	r.Records, r.Data, r.Peak = records.Load(), data.Load(), memory("VmHWM")
	return r, err
}

func runLargePagesSDK(job clientJob, ready func() error) (r clientResult, err error) {
	if err := ready(); err != nil {
		return r, err
	}
	client := benchClient(job.Address)
	r.Before = memory("VmRSS")
	var records, data atomic.Int64
	var group sync.WaitGroup
	began := time.Now()
	for shard := range job.Shards {
		group.Go(func() {
			iterator := benchserver.Iterator(shard, 0)
			out, err := client.GetRecords(context.Background(), &kinesis.GetRecordsInput{ShardIterator: &iterator, Limit: aws.Int32(10_000)})
			if err != nil {
				return // the number of records shows the error
			}
			for i := range out.Records {
				data.Add(int64(len(out.Records[i].Data)))
			}
			records.Add(int64(len(out.Records)))
		})
	}
	group.Wait()
	r.Length, r.Records, r.Data, r.Peak = time.Since(began), records.Load(), data.Load(), memory("VmHWM")
	return r, nil
}
