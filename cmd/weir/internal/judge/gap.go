package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Gap is the time during which the shards of a killed or stopped worker were not handled.
type Gap struct {
	Longest time.Duration
	Shard   string // the shard with the longest time
	// Silent contains the shards in which no record was handled after the worker was killed or
	// stopped. Longest does not include them.
	Silent []string
}

// GapAfter measures the gap after a worker was killed. For each shard that the worker held, it
// measures the time from the kill to the first record that another worker handled. Longest is the
// maximum of these times.
func GapAfter(journals map[string][]Handling, worker string, killed time.Time, held []string) Gap {
	return gap(journals, worker, held, func(string) int64 { return killed.UnixNano() })
}

// GapBetween measures the gap after a worker was asked to stop. For each shard that the worker
// held, it measures the time from the last record that the worker handled to the first record that
// another worker handled after that. If the worker handled no record of a shard, the time starts at
// the request to stop.
func GapBetween(journals map[string][]Handling, worker string, asked time.Time, held []string) Gap {
	last := map[string]int64{}
	for _, h := range journals[worker] {
		last[h.Shard] = max(last[h.Shard], h.At)
	}
	return gap(journals, worker, held, func(shard string) int64 {
		if at, handled := last[shard]; handled {
			return at
		}
		return asked.UnixNano()
	})
}

func gap(journals map[string][]Handling, worker string, held []string, since func(shard string) int64) Gap {
	first := map[string]int64{}
	for name, journal := range journals {
		if name == worker {
			continue
		}
		for _, h := range journal {
			if at, any := first[h.Shard]; h.At > since(h.Shard) && (!any || h.At < at) {
				first[h.Shard] = h.At
			}
		}
	}
	var g Gap
	for _, shard := range held {
		at, any := first[shard]
		if !any {
			g.Silent = append(g.Silent, shard)
			continue
		}
		if d := time.Duration(at - since(shard)); d > g.Longest {
			g.Longest, g.Shard = d, shard
		}
	}
	slices.Sort(g.Silent)
	return g
}

// Over reports whether records of all shards are handled again.
func (g Gap) Over() bool { return len(g.Silent) == 0 }

// String formats the gap for users.
func (g Gap) String() string {
	if !g.Over() {
		return fmt.Sprintf("still silent: %s", strings.Join(g.Silent, ", "))
	}
	return g.Longest.Round(time.Millisecond).String()
}
