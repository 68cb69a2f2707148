package behaviour

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// allowLarge raises the maximum size of records in stream "s" to 10 MiB.
func allowLarge(t *testing.T, srv *kinesistest.Server) {
	t.Helper()
	in := &kinesis.UpdateMaxRecordSizeInput{StreamARN: aws.String(srv.StreamARN("s")), MaxRecordSizeInKiB: aws.Int32(10 << 10)}
	if _, err := srv.Client().UpdateMaxRecordSize(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// keysOf returns a key for each of n shards that divide the hash keys evenly, in order.
func keysOf(n int) []string {
	keys := make([]string, n)
	for i, left := 0, n; left > 0; i++ {
		key := fmt.Sprint("k", i)
		sum := md5.Sum([]byte(key))
		at, _ := bits.Mul64(binary.BigEndian.Uint64(sum[:]), uint64(n))
		if keys[at] == "" {
			keys[at] = key
			left--
		}
	}
	return keys
}

// Records larger than a shard's share of MaxMemory are read as fast as the service allows.
func TestRecordsLargerThanAShareAreRead(t *testing.T) {
	for name, test := range map[string]struct {
		shards, busy, records, size, memory int
		bound                               time.Duration
		reads                               int // maximum number of reads whose results are discarded
	}{
		"one busy shard among idle ones":  {100, 1, 2, 1_048_560, 0, 5 * time.Second, 2},
		"records of 5,000 KiB":            {8, 8, 1, 5000 << 10, 128 << 20, 30 * time.Second, 16},
		"records of 1 MiB, little memory": {20, 20, 2, 1 << 20, 16 << 20, 20 * time.Second, 40},
		"one shard, records of 10 MiB":    {1, 1, 4, 10<<20 - 64, 24 << 20, 40 * time.Second, 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubbleWith(t, kinesistest.Config{}, test.shards, func(t *testing.T, srv *kinesistest.Server) {
				allowLarge(t, srv)
				keys := keysOf(test.shards)
				data := bytes.Repeat([]byte{'x'}, test.size)
				for _, key := range keys[:test.busy] {
					for range test.records {
						srv.Put("s", key, data)
					}
				}
				var got atomic.Int64
				began := time.Now()
				stop := start(t, srv.Client(), memstore.New(), weir.Options{MaxMemory: test.memory}, func(_ context.Context, b *weir.Batch) error {
					for _, r := range b.Records {
						if len(r.Data) == test.size {
							got.Add(1)
						}
					}
					return nil
				})
				defer func() { _ = stop() }()
				took := until(t, "everything is handled", 30*time.Minute, func() bool { return got.Load() == int64(test.busy*test.records) })
				idle := test.shards * int(time.Since(began)/(800*time.Millisecond)+1)
				calls := srv.Requests("GetRecords")
				t.Logf("after %v and %d reads", took, calls)
				if took > test.bound {
					t.Errorf("it took %v, want %v at most", took, test.bound)
				}
				if calls > idle+test.busy*test.records+test.reads {
					t.Errorf("%d reads, of which %d may be at the tip", calls, idle)
				}
			})
		})
	}
}

// Records of any size are read with any valid MaxMemory, on each path and by fan-out. The long
// form tries many more settings, with up to 2,000 shards.
func TestRecordsOfAnySizeAreReadWithAnyMemory(t *testing.T) {
	seed, runs, most := uint64(1), 4, 12
	if longform.On() {
		seed, runs, most = uint64(time.Now().UnixNano()), 60, 2000
	}
	t.Logf("seed %d", seed)
	for i := range runs {
		dice := rand.New(rand.NewPCG(seed, uint64(i)))
		t.Run(fmt.Sprint(i), func(t *testing.T) { drawnMemory(t, dice, i, most) })
	}
}

func drawnMemory(t *testing.T, dice *rand.Rand, i, most int) {
	by := []string{"own calls", "under the SDK", "by the SDK", "over net/http"}[i%4]
	opts := weir.Options{MaxMemory: []int{16 << 20, 16<<20 + 1, 24 << 20, 32 << 20, 128 << 20}[dice.IntN(5)]}
	fan := i%3 == 2
	if fan {
		opts.FanOut.Mode = weir.FanOutRegister
	}
	if i%4 == 3 {
		opts.Concurrency = weir.Concurrency{Keys: 4}
	}
	shards := 1 + int(math.Pow(float64(most), dice.Float64()))
	share := opts.MaxMemory / 2 / shards
	edges := []int{1, 64 << 10, 512 << 10, share, share + 2<<20, 1 << 20, 2 << 20, 5000 << 10, 10<<20 - 300}
	bubbleWith(t, kinesistest.Config{MaxBytes: -1}, shards, func(t *testing.T, srv *kinesistest.Server) {
		allowLarge(t, srv)
		keys := keysOf(shards)
		want, bytes, total := 0, 0, 12<<20
		if longform.On() {
			total = 64 << 20
		}
		for want == 0 || want < 24 && bytes < total {
			size := min(max(edges[dice.IntN(len(edges))]+dice.IntN(601)-300, 1), 10<<20-300)
			srv.Put("s", keys[dice.IntN(min(shards, 8))], make([]byte, size))
			want++
			bytes += size
		}
		var got atomic.Int64
		pause := time.Duration(dice.IntN(2000)) * time.Millisecond
		stop := start(t, forced(srv.Client(), by), memstore.New(), opts, func(ctx context.Context, b *weir.Batch) error {
			time.Sleep(pause)
			got.Add(int64(len(b.Records)))
			return nil
		})
		defer func() { _ = stop() }()
		took := until(t, "everything is handled", 10*time.Minute, func() bool { return got.Load() >= int64(want) })
		t.Logf("%d shards, MaxMemory %d, %s, fan-out %t, handler %v: %d records of %d bytes after %v and %d reads",
			shards, opts.MaxMemory, by, fan, pause, want, bytes, took, srv.Requests("GetRecords"))
		// The service allows 2 MiB/s, and each answer of GetRecords waits for the previous answer.
		if bound := time.Duration(bytes>>20)*time.Second + time.Duration(want)*(pause+time.Second) + time.Minute; took > bound {
			t.Errorf("it took %v, want %v at most", took, bound)
		}
	})
}

// If a shard waits for memory, its status and the log say so. The log line about shards without
// progress names the wait for memory as the reason.
func TestAShardThatWaitsForMemorySaysSo(t *testing.T) {
	bubbleWith(t, kinesistest.Config{}, 3, func(t *testing.T, srv *kinesistest.Server) {
		allowLarge(t, srv)
		for _, key := range keysOf(3) {
			srv.Put("s", key, bytes.Repeat([]byte{'x'}, 10<<20-300))
		}
		var log lockedBuffer
		opts := weir.Options{App: "app", Streams: []string{"s"}, MaxMemory: 16 << 20, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		c, err := weir.New(srv.Client(), memstore.New(), opts)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- c.Run(ctx, weir.HandlerFunc(func(ctx context.Context, _ *weir.Batch) error { <-ctx.Done(); return ctx.Err() }))
		}()
		time.Sleep(time.Minute)
		waiting := 0
		for _, s := range c.Shards() {
			if s.Reason == health.AwaitingMemory {
				waiting++
				if s.Err == nil || !strings.Contains(s.Err.Error(), "MaxMemory") {
					t.Errorf("the status says %v", s.Err)
				}
			}
		}
		if waiting != 1 {
			t.Errorf("%d shards wait for memory: %+v", waiting, c.Shards())
		}
		if text := log.String(); strings.Count(text, "waits for memory") != 1 || !strings.Contains(text, "max_memory=16777216") {
			t.Errorf("the log says %s", text)
		}
		time.Sleep(3 * time.Minute)
		if text := log.String(); !strings.Contains(text, `reason="waiting for memory"`) || strings.Contains(text, "err=<nil>") {
			t.Errorf("the log says %s", text)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
