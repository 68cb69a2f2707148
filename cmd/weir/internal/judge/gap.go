package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Gap is how long the shards of a worker that went away were silent.
type Gap struct {
	Longest time.Duration
	Shard   string // the one that was silent longest
	// Silent are shards without a handled record since then. Longest does not cover them.
	Silent []string
}

// GapAfter measures from the moment at which a worker was killed: for each shard that it held then,
// until the first record that another worker handled in it. Longest is the longest of these times.
func GapAfter(journals map[string][]Handling, worker string, killed time.Time, held []string) Gap {
	return gap(journals, worker, held, func(string) int64 { return killed.UnixNano() })
}

// GapBetween measures, for each shard that a worker held when it was asked to stop, from the last
// record that it handled there to the first that another worker handled after it. A shard in which
// it never handled anything counts from when it was asked.
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

// Over reports whether all the shards flow again.
func (g Gap) Over() bool { return len(g.Silent) == 0 }

// String is for people.
func (g Gap) String() string {
	if !g.Over() {
		return fmt.Sprintf("still silent: %s", strings.Join(g.Silent, ", "))
	}
	return g.Longest.Round(time.Millisecond).String()
}
