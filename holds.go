package weir

import (
	"sync"
	"time"

	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/lease"
)

const (
	// holdTold is how long a checkpoint has to be held for a worker to say so with its beats.
	holdTold = 30 * time.Second
	// holdsByShard is how many of them it names. More would make each beat larger, for what goes on
	// for as long as the worker runs.
	holdsByShard = 5
)

// hold is why the checkpoint of a shard is kept where it is.
type hold struct {
	why   string
	since mono.Time
}

// holds are those of a worker, by shard. The zero value has none.
type holds struct {
	mu sync.Mutex
	of map[lease.Key]hold
}

// Hold says that the shard's checkpoint is kept where it is on purpose, from now on, and why, such
// as "by an open window"; "" says that it is not any more. It changes nothing but what
// [Consumer.Shards] and, after a while, the store tell of the shard, so that people do not take it
// for stuck. It may be called by several goroutines at a time.
func (s *Shard) Hold(why string) { s.holds.set(lease.Key{Stream: s.Stream, Shard: s.Shard}, why) }

func (h *holds) set(key lease.Key, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if why == "" {
		delete(h.of, key)
		return
	}
	if h.of == nil {
		h.of = map[lease.Key]hold{}
	}
	h.of[key] = hold{why, mono.Now()}
}

func (h *holds) get(key lease.Key) hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of[key]
}

// tell adds what is held on purpose to what is not well, behind it: shard by shard while they are
// few, else in one sum. A shard that is not well is left out.
func (h *holds) tell(troubles []lease.Trouble, now time.Time) []lease.Trouble {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.of) == 0 {
		return troubles
	}
	unwell := map[lease.Key]bool{}
	for i := range troubles {
		unwell[troubles[i].Key] = true
	}
	sum := lease.Trouble{State: lease.OnPurpose}
	n, all := 0, len(troubles)
	for key, of := range h.of {
		since := now.Sub(of.since.Time()).Truncate(time.Second)
		if since < holdTold || unwell[key] {
			continue
		}
		if n++; since > sum.For {
			sum.For, sum.Why = since, of.why
		}
		if n <= holdsByShard {
			troubles = append(troubles, lease.Trouble{Key: key, State: lease.OnPurpose, For: since, Why: of.why})
		}
	}
	if n > holdsByShard {
		return append(troubles[:all], sum)
	}
	sortTroubles(troubles[all:])
	return troubles
}
