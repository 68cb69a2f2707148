package costs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/lease"
)

// TestHistoryOnDynamoDB prints the cost of storing the history and of deleting expired parts. The
// server counts the cost. The test compares it with the documented cost.
func TestHistoryOnDynamoDB(t *testing.T) {
	s := servers.DynamoDBLocal(t)
	const minutes = 12
	for _, size := range [][2]int{{100, 20}, {1000, 1}, {1000, 20}} {
		shards, workers := size[0], size[1]
		m, _ := dynamo(t, s, fmt.Sprintf("history-%d-%d", shards, workers))
		store := m.Store.(lease.Historian)
		put := func(from int64) {
			for w := range workers {
				writer := history.NewWriter(history.Room(app, session(w)), session(w))
				for minute := from; minute < from+minutes; minute++ {
					samples := make([]history.Sample, shards/workers)
					for i := range samples { // every byte changes each minute
						samples[i] = history.Sample{
							Key: lease.Key{Stream: "orders", Shard: fmt.Sprintf("shardId-%012d", i*workers+w)}, Minute: minute,
							Lag: time.Duration(minute-from+1) * time.Minute, Age: time.Duration(minute-from+2) * time.Minute, Load: lease.Load(minute % 80),
							Busy: int(minute % 100), Throttled: int(minute%100) + 1, Marks: history.Failing,
						}
					}
					c := lease.HistoryChunk{Session: session(w)}
					c.Since, c.Data = writer.Add(minute, samples)
					if err := store.PutHistory(t.Context(), app, c); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		const first = 29_000_000
		put(first)
		c := m.meter(func() { put(first + int64(lease.HistoryKept/time.Minute) + 2*minutes) })
		hour := 60.0 / minutes
		t.Logf("%5d shards, %2d workers, an hour: %.0f write units and %.0f read units in %.0f requests (%s in %d minutes)",
			shards, workers, c.writes*hour, c.reads*hour, float64(c.requests)*hour, c.said(), minutes)
		if c.writes*hour > 2000 {
			t.Errorf("the history of %d shards and %d workers costs %.0f write units an hour", shards, workers, c.writes*hour)
		}
		if c.kinds["DeleteItem"] == 0 {
			t.Error("nothing was removed")
		}
		read := m.meter(func() {
			if chunks, err := store.History(t.Context(), app, 0); err != nil || len(chunks) == 0 {
				t.Errorf("%d chunks, %v", len(chunks), err)
			}
		})
		t.Logf("      reading them: %.1f read units for %d minutes", read.reads, minutes)
	}
}
