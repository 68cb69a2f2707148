package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/shard"
)

// picture is the state of the store, the journals and the processes at one moment.
type picture struct {
	at      time.Duration // time since the start
	shards  []shardState  // parents come before children
	workers []workerState // in the order of their start
	steps   []step

	flights, put, handled, distinct int
	endpoint, page                  string
}

// shardState is the state of a shard and its lease.
type shardState struct {
	id       string
	parents  []string
	hash     shard.HashRange
	owner    string // name of the worker; "" while the lease is free
	moving   bool   // a handoff was requested
	epoch    uint64
	finished bool // read to its end
	closed   bool // another shard names this one as its parent

	put, distinct int     // records
	rate          float64 // records handled per second, smoothed
}

// lag returns the number of records in the shard that are not handled yet.
func (s shardState) lag() int { return max(0, s.put-s.distinct) }

// short returns the ID of the shard without the prefix of all IDs.
func (s shardState) short() string { return shortID(s.id) }

func shortID(id string) string {
	return cmp.Or(strings.TrimLeft(strings.TrimPrefix(id, "shardId-"), "0"), "0")
}

// life is the state of a worker process.
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
	found string // result of the step
}

func (p picture) worker(name string) workerState {
	for _, w := range p.workers {
		if w.name == name {
			return w
		}
	}
	return workerState{}
}

// lead returns the name of the leader, or "" if there is none.
func (p picture) lead() string {
	for _, w := range p.workers {
		if w.leads {
			return w.name
		}
	}
	return ""
}

// heldBy returns the unfinished shards whose leases a worker holds.
func (p picture) heldBy(worker string) []string {
	var held []string
	for _, s := range p.shards {
		if s.owner == worker && !s.finished {
			held = append(held, s.id)
		}
	}
	return held
}

// open returns the shards that accept records.
func (p picture) open() []shardState {
	return slices.DeleteFunc(slices.Clone(p.shards), func(s shardState) bool { return s.closed || s.finished })
}

// balanced reports whether the given number of workers live, their numbers of leases differ by at
// most one, and no lease is free or moving. It ignores finished leases and leases that wait for a
// parent.
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

// quiet reports whether every closed shard was read to its end. From then on, leases move only
// because workers join or leave.
func (p picture) quiet() bool {
	return !slices.ContainsFunc(p.shards, func(s shardState) bool { return s.closed && !s.finished })
}

// busiest returns the open shard with the most records.
func (p picture) busiest() (shardState, error) {
	open := p.open()
	if len(open) == 0 {
		return shardState{}, fmt.Errorf("no shard is open")
	}
	return slices.MaxFunc(open, func(a, b shardState) int { return cmp.Compare(a.put, b.put) }), nil
}

// quietestPair returns the two adjacent open shards that have the fewest records together. It
// prefers shards without parents, because merging the two children of a split again would show
// less.
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

// victim returns the worker to kill. That is the leader if leader is true. Otherwise it is the
// worker with the most leases among the others. The worker must hold a shard, because otherwise its
// death would show nothing.
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

// childrenOf returns the shards that have all of the given shards as parents.
func (p picture) childrenOf(parents ...string) []shardState {
	return slices.DeleteFunc(slices.Clone(p.shards), func(s shardState) bool {
		return slices.ContainsFunc(parents, func(id string) bool { return !slices.Contains(s.parents, id) })
	})
}
