package weir

import (
	"time"

	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/lease"
)

const (
	// holdTold is the age from which heartbeats report that a checkpoint is held.
	holdTold = 30 * time.Second
	// holdsByShard is how many held shards heartbeats list by name. More would make each heartbeat
	// larger for as long as the worker runs.
	holdsByShard = 5
)

// hold is why the checkpoint of a shard is kept where it is.
type hold struct {
	why   string
	since mono.Time
}

// Hold reports that the shard's checkpoint is kept in place on purpose from now on, and why, such
// as "by an open window". "" reports that it is not held any more. Hold affects only the reports
// about the shard, of [Consumer.Shards] and, after a while, of the store, so that operators do not
// take it for stuck. A hold ends with the call of Pull that got the Shard; later calls of Hold have
// no effect. Hold may be called concurrently.
func (s *Shard) Hold(why string) { s.pull.hold(why) }

func (p *puller) hold(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held = (hold{}); why != "" {
		p.held = hold{why, mono.Now()}
	}
}

// held returns the reason for which the checkpoint is kept in place. It reads the term's current
// handler, so a hold cannot outlast its term. An abandoned handler holds nothing, because its lease
// is given up.
func (l *shardLoop) held() hold {
	l.mu.Lock()
	h, left := l.handles, l.left != nil
	l.mu.Unlock()
	if h == nil || h.pull == nil || left {
		return hold{}
	}
	h.pull.mu.Lock()
	defer h.pull.mu.Unlock()
	return h.pull.held
}

// holds are the holds of a worker's shards.
type holds map[lease.Key]hold

// holdsOf returns the holds of some shards, or nil.
func (r *run) holdsOf(loops []*shardLoop) (all holds) {
	if r.shards == nil || r.shards.Pull == nil {
		return nil
	}
	for _, l := range loops {
		if h := l.held(); l.in == r && h.why != "" {
			if all == nil {
				all = holds{}
			}
			all[l.term.Lease.Key] = h
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
