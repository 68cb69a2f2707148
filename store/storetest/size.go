package storetest

import (
	"fmt"
	"slices"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

const manyLeases, manyWorkers = 1000, 20

var sizeCases = []testCase{
	{"a thousand leases and twenty workers", func(e *env) {
		var c crowd
		c.setUp(e)
		c.report(e)
		c.handOver(e)
	}},
}

// crowd is many workers with many leases. The leases are assigned to the workers in turn.
type crowd struct {
	keys    []lease.Key
	creates []lease.Action
	assigns []lease.Action
}

func crowdSession(i int) string { return fmt.Sprintf("worker-%02d", i%manyWorkers) }

func crowdShard(i int) string { return fmt.Sprintf("shardId-%012d", i) }

// setUp creates the leases and assigns them.
func (c *crowd) setUp(e *env) {
	for i := range manyLeases {
		id := crowdShard(i)
		a := create(id)
		a.Lease.Parents = []string{crowdShard(i + manyLeases), crowdShard(i + 2*manyLeases)}
		c.creates = append(c.creates, a)
		c.assigns = append(c.assigns, assign(id, 1, crowdSession(i)))
		c.keys = append(c.keys, k(id))
	}
	e.must(c.creates...)
	e.refused(c.creates...)
	for i := range manyWorkers {
		e.start(crowdSession(i))
	}
	e.must(c.assigns...)
	e.refused(c.assigns...)
}

// report lets each worker report on all of its fifty leases, and checks the stored leases.
func (c *crowd) report(e *env) {
	for w := range manyWorkers {
		held := e.beat(crowdSession(w)).Held
		var progress []lease.Progress
		for _, l := range held {
			progress = append(progress, lease.Progress{
				Key: l.Key, Epoch: l.Epoch, Position: seq(uint64(100 + w)),
			})
		}
		var mine []lease.Key
		for i := w; i < manyLeases; i += manyWorkers {
			mine = append(mine, c.keys[i])
		}
		e.held(e.beat(crowdSession(w), progress...), mine...)
	}
	v := e.view()
	equal(e, "leases", len(v.Leases), manyLeases)
	equal(e, "workers", len(v.Workers), manyWorkers)
	slices.SortFunc(v.Leases, func(a, b lease.Lease) int { return a.Key.Compare(b.Key) })
	for i, l := range v.Leases {
		want := c.creates[i].Lease
		want.Epoch, want.Owner, want.Last = 2, crowdSession(i), crowdSession(i)
		want.Position = seq(uint64(100 + i%manyWorkers))
		if describe(l) != describe(want) {
			e.Fatalf("lease\n got %s\nwant %s", describe(l), describe(want))
		}
	}
}

// handOver lets the first worker take all leases and end a tenth of them. Handoffs are requested
// for the other leases, and then the worker leaves.
func (c *crowd) handOver(e *env) {
	first := crowdSession(0)
	for i := range c.assigns {
		c.assigns[i].Epoch, c.assigns[i].Session = 2, first
	}
	e.must(c.assigns...)
	e.held(e.beat(first), c.keys...)
	var ends []lease.Progress
	for i := range manyLeases / 10 {
		parents := []string{crowdShard(i)}
		ends = append(ends, lease.Progress{Key: c.keys[i], Epoch: 3, Position: shard.End,
			Children: []shard.Shard{
				{ID: crowdShard(i + 3*manyLeases), Parents: parents},
				{ID: crowdShard(i + 4*manyLeases), Parents: parents},
			}})
	}
	e.held(e.beat(first, ends...), c.keys[manyLeases/10:]...)
	var wishes []lease.Action
	for i := manyLeases / 10; i < manyLeases; i++ {
		wishes = append(wishes, handoff(crowdShard(i), 3, crowdSession(1+i%(manyWorkers-1))))
	}
	e.must(wishes...)
	e.leave(first)
	v := e.view()
	equal(e, "leases", len(v.Leases), manyLeases+manyLeases/5)
	var finished, owned, free int
	for _, l := range v.Leases {
		switch {
		case l.Finished():
			finished++
		case l.Owner == "":
			free++
		case l.Owner != first:
			owned++
		}
	}
	equal(e, "finished, owned, free", [3]int{finished, owned, free},
		[3]int{manyLeases / 10, manyLeases * 9 / 10, manyLeases / 5})
	total := 0
	for w := 1; w < manyWorkers; w++ {
		total += len(e.beat(crowdSession(w)).Held)
	}
	equal(e, "held by the heirs", total, manyLeases*9/10)
}
