package weir_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// allowLarge lets records of "s" have 10 MiB.
func allowLarge(t *testing.T, srv *kinesistest.Server) {
	t.Helper()
	in := &kinesis.UpdateMaxRecordSizeInput{StreamARN: aws.String(srv.StreamARN("s")), MaxRecordSizeInKiB: aws.Int32(10 << 10)}
	if _, err := srv.Client().UpdateMaxRecordSize(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// keysOf returns a key for each of n shards that split the keys evenly, in order.
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

// Records that are larger than a shard's share of MaxMemory are read at the pace of the service.
func TestRecordsLargerThanAShareAreRead(t *testing.T) {
	for name, test := range map[string]struct {
		shards, busy, records, size, memory int
		bound                               time.Duration
		reads                               int // that are wasted, at most
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
				defer stop()
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

var _ = slices.Sort[[]int]
var _ = strings.Cut
var _ slog.Level
