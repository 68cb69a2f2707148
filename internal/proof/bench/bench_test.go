package bench

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// quiet is a logger that discards everything.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// BenchmarkStart measures the start of a new application: the time from Run to the first handled
// record, and the time until a record of each of 16 shards is handled.
func BenchmarkStart(b *testing.B) {
	// The runs follow each other faster than real applications, so disable limits.
	srv := kinesistest.NewServer(b, kinesistest.Config{NoLimits: true})
	srv.CreateStream("s", 16)
	for i := range 400 { // enough that every shard gets some
		key := fmt.Sprint(i)
		srv.Put("s", key, []byte(key))
	}
	client := srv.Client()
	var first, all time.Duration
	for b.Loop() {
		c, err := weir.New(client, memstore.New(), weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet})
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		var shards atomic.Int32
		began := time.Now()
		if err := c.Run(ctx, weir.HandlerFunc(func(context.Context, *weir.Batch) error {
			switch shards.Add(1) {
			case 1:
				first += time.Since(began)
			case 16:
				all += time.Since(began)
				cancel()
			}
			return nil
		})); err != nil {
			b.Fatal(err)
		}
		cancel()
	}
	b.ReportMetric(float64(first.Milliseconds())/float64(b.N), "ms/first-record")
	b.ReportMetric(float64(all.Milliseconds())/float64(b.N), "ms/all-16-shards")
}
