package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/shard"
)

// picture is the state of the store, the handlers' journals and the processes at one moment.
type picture struct {
	at      time.Duration // since the start
	shards  []shardState  // parents before children
	workers []workerState // in the order they started
	steps   []step

	flights, put, handled, distinct int
	endpoint, page                  string
}

// shardState is one shard and its lease.
type shardState struct {
	id       string
	parents  []string
	hash     shard.HashRange
	owner    string // the worker's name, "" while the lease is free
	moving   bool   // a wish to hand it over is written
	epoch    uint64
	finished bool // read to its end
	closed   bool // some other shard names it as a parent

	put, distinct int     // records
	rate          float64 // records handled in a second, smoothed
}

// lag is how many records of the shard wait to be handled.
func (s shardState) lag() int { return max(0, s.put-s.distinct) }

// short is the shard's ID without what all IDs have in common.
func (s shardState) short() string { return shortID(s.id) }

func shortID(id string) string {
	return cmp.Or(strings.TrimLeft(strings.TrimPrefix(id, "shardId-"), "0"), "0")
}

// life is where a worker's process is between its start and its end.
type life uint8

const (
	starting life = iota
	living
	stopping
	stopped
	killed
)

func (l life) String() string {
	return [...]string{"starting", "alive", "stopping", "stopped", "killed"}[l]
}

// workerState is one worker process.
type workerState struct {
	name    string
	pid     int
	life    life
	leads   bool
	leases  int
	handled int
}

// step is one line of the script.
type step struct {
	text  string
	begun bool
	done  bool
	took  time.Duration
	found string // the outcome
}

func (p picture) worker(name string) workerState {
	for _, w := range p.workers {
		if w.name == name {
			return w
		}
	}
	return workerState{}
}

// lead is the name of the worker that leads, "" when none does.
func (p picture) lead() string {
	for _, w := range p.workers {
		if w.leads {
			return w.name
		}
	}
	return ""
}

// heldBy are the shards whose leases a worker holds, those read to their end left out.
func (p picture) heldBy(worker string) []string {
	var held []string
	for _, s := range p.shards {
		if s.owner == worker && !s.finished {
			held = append(held, s.id)
		}
	}
	return held
}

// open are the shards that take records.
func (p picture) open() []shardState {
	return slices.DeleteFunc(slices.Clone(p.shards), func(s shardState) bool { return s.closed || s.finished })
}

// balanced reports whether n workers share the leases with work evenly and no lease is moving.
func (p picture) balanced(workers int) bool {
	finished := map[string]bool{}
	known := map[string]bool{}
	for _, s := range p.shards {
		finished[s.id], known[s.id] = s.finished, true
	}
	held := map[string]int{}
	for _, s := range p.shards {
		waits := slices.ContainsFunc(s.parents, func(id string) bool { return known[id] && !finished[id] })
		switch {
		case s.finished || waits:
		case s.owner == "" || s.moving:
			return false
		default:
			held[s.owner]++
		}
	}
	living := 0
	least, most := len(p.shards), 0
	for _, w := range p.workers {
		if w.life == killed || w.life == stopped || w.life == stopping {
			if held[w.name] > 0 {
				return false
			}
			continue
		}
		living++
		least, most = min(least, held[w.name]), max(most, held[w.name])
	}
	return living == workers && len(held) > 0 && most-least <= 1
}

// quiet reports whether no shard is between its end and its children's beginning, so that only
// workers move.
func (p picture) quiet() bool {
	return !slices.ContainsFunc(p.shards, func(s shardState) bool { return s.closed && !s.finished })
}

// busiest is the open shard with the most records.
func (p picture) busiest() (shardState, error) {
	open := p.open()
	if len(open) == 0 {
		return shardState{}, fmt.Errorf("no shard is open")
	}
	return slices.MaxFunc(open, func(a, b shardState) int { return cmp.Compare(a.put, b.put) }), nil
}

// quietestPair are two open shards side by side, the pair with the fewest records; children of a
// split only when there is no other, since merging them again would show less.
func (p picture) quietestPair() (lower, upper shardState, err error) {
	open := p.open()
	slices.SortFunc(open, func(a, b shardState) int { return a.hash.Start.Compare(b.hash.Start) })
	best := -1
	score := func(i int) (int, int) {
		born := 0
		if len(open[i].parents)+len(open[i+1].parents) > 0 {
			born = 1
		}
		return born, open[i].put + open[i+1].put
	}
	for i := 0; i+1 < len(open); i++ {
		if open[i].hash.End.Next() != open[i+1].hash.Start {
			continue
		}
		if best >= 0 {
			born, put := score(i)
			bestBorn, bestPut := score(best)
			if cmp.Or(cmp.Compare(born, bestBorn), cmp.Compare(put, bestPut)) >= 0 {
				continue
			}
		}
		best = i
	}
	if best < 0 {
		return lower, upper, fmt.Errorf("no two open shards are neighbours")
	}
	return open[best], open[best+1], nil
}

// victim is the worker to kill: the leader, or else the one with the most leases that is not the
// leader. It must hold a shard, or its death would show nothing.
func (p picture) victim(leader bool) (string, error) {
	var best string
	for _, w := range p.workers {
		if w.life != living || w.leads != leader || len(p.heldBy(w.name)) == 0 {
			continue
		}
		if best == "" || len(p.heldBy(w.name)) > len(p.heldBy(best)) {
			best = w.name
		}
	}
	if best == "" {
		return "", fmt.Errorf("no worker is there to be killed")
	}
	return best, nil
}

// childrenOf are the shards that name all of the given ones as parents.
func (p picture) childrenOf(parents ...string) []shardState {
	return slices.DeleteFunc(slices.Clone(p.shards), func(s shardState) bool {
		return slices.ContainsFunc(parents, func(id string) bool { return !slices.Contains(s.parents, id) })
	})
}
