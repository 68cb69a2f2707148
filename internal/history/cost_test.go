package history

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
)

// cost is the cost of a group's history per hour.
type cost struct {
	writes, deletes float64 // in units of DynamoDB
	chunks          float64
	kilobytes       float64 // stored data
}

// anHour returns the cost of the history of workers that share the shards evenly. Deleting a row
// costs the same as writing it, and each chunk is deleted once.
func anHour(shards, workers int, next func(minute, shard int) Sample) cost {
	const app, session = "an application's name", "worker-name-of-a-pod-7c9f8d5b4-x2x7q:0123456789abcdef"
	per, room := shards/workers, Room(app, session)
	rowUnits := func(data int) int { return (data + beside + len(app) + len(session) + unit - 1) / unit }
	w, sizes, c := NewWriter(room, "worker-name-of-a-pod-7c9f8d5b4-x2x7q-and-more"), map[int64]int{}, cost{}
	for minute := range 60 {
		samples := make([]Sample, per)
		for n := range samples {
			samples[n] = next(minute, n)
			samples[n].Key = key(1000 + n*workers)
		}
		since, data := w.Add(int64(29_000_000+minute), samples)
		sizes[since] = len(data)
		c.writes += float64(rowUnits(len(data)) * workers)
	}
	for _, size := range sizes {
		c.deletes += float64(rowUnits(size) * workers)
		c.chunks += float64(workers)
		c.kilobytes += float64(size*workers) / 1024
	}
	return c
}

// TestHistoryCostsWhatIsPromised prints and limits the write units of an hour.
func TestHistoryCostsWhatIsPromised(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(7, 7))
	kinds := []struct {
		name string
		next func(minute, shard int) Sample
	}{
		{"idle", func(minute, _ int) Sample { return Sample{Age: time.Duration(minute+1) * time.Minute, Load: 1} }},
		{"at work", func(minute, shard int) Sample {
			return Sample{Lag: time.Duration(dice.IntN(900)) * time.Millisecond, Age: time.Duration(dice.IntN(900)) * time.Millisecond, Load: 34, Busy: 20 + dice.IntN(4)}
		}},
		{"all changes", func(minute, _ int) Sample { // all bytes change each minute
			return Sample{Lag: time.Duration(minute+1) * time.Minute, Age: time.Duration(minute+2) * time.Minute, Load: lease.Load(minute), Busy: minute, Throttled: minute + 1, Marks: Failing | Unread}
		}},
	}
	t.Logf("%7s %7s  %-12s %8s %8s %8s %8s %9s", "shards", "workers", "shards are", "writes", "deletes", "units", "chunks", "KB stored")
	for _, size := range [][2]int{{100, 5}, {100, 20}, {1000, 1}, {1000, 5}, {1000, 20}, {10_000, 100}} {
		for _, kind := range kinds {
			c := anHour(size[0], size[1], kind.next)
			t.Logf("%7d %7d  %-12s %8.0f %8.0f %8.0f %8.0f %9.0f", size[0], size[1], kind.name, c.writes, c.deletes, c.writes+c.deletes, c.chunks, c.kilobytes)
			if units := c.writes + c.deletes; size[0] <= 1000 && units > 2000 {
				t.Errorf("%d shards and %d workers cost %.0f units an hour", size[0], size[1], units)
			}
		}
	}
}
