//go:build unix

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/benchserver"
)

// BenchmarkFanout is like [BenchmarkConsumer], but uses fan-out. It reads events of 1,000 records
// in JSON over TLS and HTTP/2, as fast as possible.
//
//	go test -run '^$' -bench Fanout -benchtime 1x ./internal/proof/bench
func BenchmarkFanout(b *testing.B) {
	fanout, reused := weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutRegister}}, weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutRegister}, ReuseBuffers: true}
	compare(b, readCase{"", true, 1000, 1024, 16, 60, 600, 120, 0}, []mode{
		{limitMode, dropEvents, 0, 0, 0},
		{sdkMode, subscribeBySDK, 0, 0, 0},
		{"weir", byWeir(fanout), 0, 0, 0},
		{"weir, reused buffers", byWeir(reused), 1.7, 3, 0},
	})
}

// readEvents measures the cost of reading all events of some shards concurrently.
func readEvents(tb testing.TB, who string, c readCase, shards int, read func(ctx context.Context, shard int) (records, size int, err error)) spent {
	tb.Helper()
	var records, size atomic.Int64
	var group sync.WaitGroup
	stop := meter()
	for shard := range min(shards, c.shards) {
		group.Go(func() {
			n, bytes, err := read(tb.Context(), shard)
			if err != nil {
				tb.Errorf("%s: %v", who, err)
			}
			records.Add(int64(n))
			size.Add(int64(bytes))
		})
	}
	group.Wait()
	s := stop(records.Load())
	if tb.Failed() {
		tb.FailNow()
	}
	c.counted(tb, who, records.Load(), size.Load())
	s.all = records.Load()
	return s
}

// dropEvents reads the answers of SubscribeToShard over HTTP/2 into a buffer and discards them.
func dropEvents(tb testing.TB, p *benchserver.Process, c readCase) spent {
	t := benchTransport(p.Address)
	defer t.CloseIdleConnections()
	client := &http.Client{Transport: t}
	return readEvents(tb, limitMode, c, max(1, c.read/c.pages), func(ctx context.Context, shard int) (int, int, error) {
		resp, err := postSubscribe(ctx, client, p.URL, shard)
		if err != nil {
			return 0, 0, err
		}
		defer func() { _ = resp.Body.Close() }()
		n, err := copyAway(resp.Body, make([]byte, 64<<10))
		records := c.records * c.pages
		if err != nil || resp.ProtoMajor != 2 || n < records*c.bytes*4/3 {
			return 0, 0, fmt.Errorf("%s %s, %d bytes, %w", resp.Proto, resp.Status, n, err)
		}
		return records, records * c.bytes, nil
	})
}

// postSubscribe calls SubscribeToShard with net/http.
func postSubscribe(ctx context.Context, client *http.Client, url string, shard int) (*http.Response, error) {
	body, err := json.Marshal(map[string]any{
		"ConsumerARN": benchserver.ConsumerARN, "ShardId": fmt.Sprintf("shardId-%012d", shard), "StartingPosition": map[string]string{"Type": "TRIM_HORIZON"},
	})
	if err != nil {
		return nil, err
	}
	return post(ctx, client, url, "SubscribeToShard", "application/x-amz-json-1.1", body)
}

// subscribeBySDK reads events with only the SDK's client.
func subscribeBySDK(tb testing.TB, p *benchserver.Process, c readCase) spent {
	return readEvents(tb, sdkMode, c, max(1, c.readSDK/c.pages), func(ctx context.Context, shard int) (records, size int, err error) {
		// Each subscription needs its own client, because subscriptions of one client share a
		// decoder without a lock.
		out, err := benchClient(p.Address).SubscribeToShard(ctx, subscribeInput(shard))
		if err != nil {
			return 0, 0, err
		}
		for e := range out.GetStream().Events() {
			if event, ok := e.(*types.SubscribeToShardEventStreamMemberSubscribeToShardEvent); ok {
				for _, r := range event.Value.Records {
					size += len(r.Data)
				}
				records += len(event.Value.Records)
			}
		}
		return records, size, out.GetStream().Close()
	})
}

func subscribeInput(shard int) *kinesis.SubscribeToShardInput {
	return &kinesis.SubscribeToShardInput{
		ConsumerARN: aws.String(benchserver.ConsumerARN), ShardId: aws.String(fmt.Sprintf("shardId-%012d", shard)),
		StartingPosition: &types.StartingPosition{Type: types.ShardIteratorTypeTrimHorizon},
	}
}
