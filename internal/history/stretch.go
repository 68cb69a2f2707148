package history

import (
	"hash/fnv"
	"time"
)

// spread is the part of each minute over which the workers of an application spread their reports.
const spread = 20 * time.Second

// ReportsAt returns when in each minute a worker reports, from 0 to 20 s. Only the last report of a
// worker that stops comes at another time.
func ReportsAt(worker string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(worker)) // never fails
	return time.Duration(h.Sum32()) % spread
}

// caughtUp is the maximum lag of a shard that is not behind.
const caughtUp = 10 * time.Second

// Stretch returns the index of the first of the samples that show why a shard is behind now. lags
// are those of its samples, the oldest first, and negative if unknown. Samples from before the
// shard was behind show nothing about it. Neither does that of the minute in which it fell behind,
// if there is a later one. If the shard was not behind at the last sample, Stretch returns 0.
func Stretch(lags []time.Duration) (first int) {
	last := len(lags) - 1
	if last < 0 || lags[last] >= 0 && lags[last] <= caughtUp {
		return 0
	}
	for first = last; first > 0; first-- {
		if before := lags[first-1]; before >= 0 && before <= caughtUp {
			break
		}
	}
	return min(first+1, last)
}
