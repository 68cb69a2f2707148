package behaviour

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// If the service distributes records over the shards itself (AUTO), there is no order per key. The
// log says so at the start. Records without a key are handled as if each had its own key.
func TestAStreamWithoutOrderIsTold(t *testing.T) {
	bubble(t, 0, func(t *testing.T, srv *kinesistest.Server) {
		client := srv.Client()
		if _, err := client.CreateStream(t.Context(), &kinesis.CreateStreamInput{
			StreamName: aws.String("s"), StreamModeDetails: &types.StreamModeDetails{StreamMode: types.StreamModeOnDemand},
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		d, err := client.DescribeStreamSummary(t.Context(), &kinesis.DescribeStreamSummaryInput{StreamName: aws.String("s")})
		if err != nil {
			t.Fatal(err)
		}
		spread := func(how types.RecordDistributionStrategy) {
			if _, err := client.UpdateStreamRecordDistributionStrategy(t.Context(), &kinesis.UpdateStreamRecordDistributionStrategyInput{
				StreamARN: d.StreamDescriptionSummary.StreamARN, RecordDistributionStrategy: how,
			}); err != nil {
				t.Fatal(err)
			}
		}
		spread(types.RecordDistributionStrategyAuto)
		time.Sleep(time.Minute)
		for i := range 40 {
			if _, err := client.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: aws.String("s"), Data: fmt.Append(nil, i)}); err != nil {
				t.Fatal(err)
			}
		}
		var log lockedBuffer
		h := newKeyed(t, time.Second)
		opts := weir.Options{App: "app", Streams: []string{"s"}, Concurrency: weir.Concurrency{Keys: 40}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		stop := start(t, client, memstore.New(), opts, h.handle)
		if took := until(t, "all", time.Minute, func() bool { return h.all() == 40 }); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
		if n := strings.Count(log.String(), "(AUTO)"); n != 1 {
			t.Errorf("it was told %d times", n)
		}
		spread(types.RecordDistributionStrategyUserPartitionKey)
		until(t, "that is told", 2*time.Hour, func() bool { return strings.Contains(log.String(), "in order from now on") })
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// During an outage of a dependency of the handlers, waiting records fill the memory, and no shard
// can be read. The leases stay where they are, because other workers would have the same problem.
func TestAnOutageKeepsLeasesWhenKeysAreSideBySide(t *testing.T) {
	bubble(t, 8, func(t *testing.T, srv *kinesistest.Server) {
		var stalled, taken atomic.Int64
		var away atomic.Bool
		away.Store(true)
		h := newKeyed(t, 0)
		h.does = func(context.Context, *weir.Batch, weir.Record) error {
			if away.Load() {
				return errors.New("away")
			}
			return nil
		}
		opts := weir.Options{
			MaxMemory: 16 << 20, Timing: weir.Timing{StallAfter: 30 * time.Second}, Concurrency: weir.Concurrency{Keys: 8},
			OnEvent: event.Join(
				event.On(func(context.Context, event.Stalled) { stalled.Add(1) }),
				event.On(func(context.Context, event.LeaseTaken) { taken.Add(1) }),
			),
		}
		opts.App, opts.Streams, opts.Logger = "app", []string{"s"}, quiet
		stop := start(t, srv.Client(), memstore.New(), opts, h.handle)
		data, puts, quietShard, of := make([]byte, 200<<10), 0, "", map[string]string{}
		for i := range 400 { // more than fits into memory, as fast as the service allows; of one shard only the first few
			copy(data, fmt.Sprint("record ", i, " "))
			key, shard := fmt.Sprint("key ", i%40), ""
			if i < 40 {
				shard, _ = srv.Put("s", key, []byte(key))
				quietShard = cmp.Or(quietShard, shard)
				of[key] = shard
			} else if of[key] != quietShard {
				srv.Put("s", key, data)
			} else {
				continue
			}
			puts++
			time.Sleep(200 * time.Millisecond)
		}
		for key, shard := range of {
			if shard == quietShard { // this shard cannot be read now
				srv.Put("s", key, data)
				puts++
			}
		}
		time.Sleep(20 * time.Minute)
		if stalled.Load() > 0 || taken.Load() != 8 {
			t.Errorf("%d shards stalled, and leases were taken %d times", stalled.Load(), taken.Load())
		}
		away.Store(false)
		until(t, "all", 10*time.Minute, func() bool { return h.all() == puts })
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
