package run

import (
	"time"

	"github.com/weir-go/weir/internal/pull"
	"github.com/weir-go/weir/internal/shardrun"
	"github.com/weir-go/weir/lease"
)

const (
	// holdTold is how long a checkpoint must be held before heartbeats report it.
	holdTold = 30 * time.Second
	// holdsByShard is the maximum number of held shards that heartbeats list by name. A longer list
	// could make each heartbeat larger for as long as the worker runs.
	holdsByShard = 5
)

// holds contains, for each shard whose checkpoint is held, the reason and the start of the hold.
type holds map[lease.Key]pull.Hold

// holdsOf returns the holds of the shards of loops. It returns nil if no checkpoint is held.
func holdsOf(loops []*shardrun.Loop) (all holds) {
	for _, l := range loops {
		if h := l.Held(); h.Why != "" {
			if all == nil {
				all = holds{}
			}
			all[l.Key()] = h
		}
	}
	return all
}

// tell appends the holds to troubles: one entry for each shard if there are few, otherwise one
// summary. It leaves out shards that are already in troubles.
func (h holds) tell(troubles []lease.Trouble, now time.Time) []lease.Trouble {
	if len(h) == 0 {
		return troubles
	}
	unwell := map[lease.Key]bool{}
	for i := range troubles {
		unwell[troubles[i].Key] = true
	}
	sum := lease.Trouble{State: lease.OnPurpose}
	n, all := 0, len(troubles)
	for key, of := range h {
		since := now.Sub(of.Since.Time()).Truncate(time.Second)
		if since < holdTold || unwell[key] {
			continue
		}
		if n++; since > sum.For {
			sum.For, sum.Why = since, of.Why
		}
		if n <= holdsByShard {
			troubles = append(troubles, lease.Trouble{Key: key, State: lease.OnPurpose, For: since, Why: of.Why})
		}
	}
	if n > holdsByShard {
		return append(troubles[:all], sum)
	}
	sortTroubles(troubles[all:])
	return troubles
}
