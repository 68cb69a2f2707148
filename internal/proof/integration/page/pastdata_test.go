package page_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// past creates an application of many shards with a history of three hours. Some shards are
// throttled and fall behind for a while. The lag of all shards rises at the end.
func past(t *testing.T, store *memstore.Store, shards int) {
	t.Helper()
	part := ^uint64(0) / uint64(shards)
	var actions []lease.Action
	for i := range shards {
		r := shard.HashRange{Start: shard.HashKey{Hi: uint64(i) * part}, End: shard.HashKey{Hi: uint64(i+1)*part - 1, Lo: ^uint64(0)}}
		actions = append(actions, lease.Action{Kind: lease.Create, Lease: lease.Lease{
			Key: lease.Key{Stream: "orders", Shard: fmt.Sprintf("shardId-%012d", i)}, Range: r, Epoch: 1, Position: shard.Oldest,
		}})
	}
	if _, err := store.Apply(t.Context(), "big", actions); err != nil {
		t.Fatal(err)
	}
	w, now := history.NewWriter(1000, ""), time.Now().Unix()/60
	for minute := now - 170; minute <= now; minute++ {
		samples := make([]history.Sample, shards)
		for i := range samples {
			lag, throttled := time.Second, 0
			if i%50 < 10 && minute > now-120 && minute < now-100 {
				throttled = 5 * (i%50 + 1)
			}
			if i%50 < 10 && minute > now-120 && minute < now-90+int64(i/50) {
				lag = time.Duration(minute-(now-120)) * time.Minute
			}
			if minute > now-20 {
				lag += time.Duration(minute-(now-20)) * 20 * time.Second
			}
			samples[i] = history.Sample{Key: lease.Key{Stream: "orders", Shard: fmt.Sprintf("shardId-%012d", i)}, Minute: minute, Lag: lag, Throttled: throttled}
		}
		since, data := w.Add(minute, samples)
		if err := store.PutHistory(t.Context(), "big", lease.HistoryChunk{Session: "worker", Since: since, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
}
