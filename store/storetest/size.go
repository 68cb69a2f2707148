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
		session := func(i int) string { return fmt.Sprintf("worker-%02d", i%manyWorkers) }
		id := func(i int) string { return fmt.Sprintf("shardId-%012d", i) }
		var creates, assigns []lease.Action
		var keys []lease.Key
		for i := range manyLeases {
			a := create(id(i))
			a.Lease.Parents = []string{id(i + manyLeases), id(i + 2*manyLeases)}
			creates = append(creates, a)
			assigns = append(assigns, assign(id(i), 1, session(i)))
			keys = append(keys, k(id(i)))
		}
		e.must(creates...)
		e.refused(creates...)
		for i := range manyWorkers {
			e.start(session(i))
		}
		e.must(assigns...)
		e.refused(assigns...)

		// Each worker holds fifty leases and reports on all of them.
		for w := range manyWorkers {
			held := e.beat(session(w)).Held
			var progress []lease.Progress
			for _, l := range held {
				progress = append(progress, lease.Progress{Key: l.Key, Epoch: l.Epoch, Position: seq(uint64(100 + w))})
			}
			var mine []lease.Key
			for i := w; i < manyLeases; i += manyWorkers {
				mine = append(mine, keys[i])
			}
			e.held(e.beat(session(w), progress...), mine...)
		}
		v := e.view()
		equal(e, "leases", len(v.Leases), manyLeases)
		equal(e, "workers", len(v.Workers), manyWorkers)
		slices.SortFunc(v.Leases, func(a, b lease.Lease) int { return a.Key.Compare(b.Key) })
		for i, l := range v.Leases {
			want := creates[i].Lease
			want.Epoch, want.Owner, want.Last, want.Position = 2, session(i), session(i), seq(uint64(100+i%manyWorkers))
			if describe(l) != describe(want) {
				e.Fatalf("lease\n got %s\nwant %s", describe(l), describe(want))
			}
		}

		// One worker takes all, ends some, is asked to hand the others on, and leaves.
		for i := range assigns {
			assigns[i].Epoch, assigns[i].Session = 2, session(0)
		}
		e.must(assigns...)
		e.held(e.beat(session(0)), keys...)
		var ends []lease.Progress
		for i := range manyLeases / 10 {
			ends = append(ends, lease.Progress{Key: keys[i], Epoch: 3, Position: shard.End, Children: []shard.Shard{
				{ID: id(i + 3*manyLeases), Parents: []string{id(i)}}, {ID: id(i + 4*manyLeases), Parents: []string{id(i)}}}})
		}
		e.held(e.beat(session(0), ends...), keys[manyLeases/10:]...)
		var wishes []lease.Action
		for i := manyLeases / 10; i < manyLeases; i++ {
			wishes = append(wishes, handoff(id(i), 3, session(1+i%(manyWorkers-1))))
		}
		e.must(wishes...)
		e.leave(session(0))
		v = e.view()
		equal(e, "leases", len(v.Leases), manyLeases+manyLeases/5)
		var finished, owned, free int
		for _, l := range v.Leases {
			switch {
			case l.Finished():
				finished++
			case l.Owner == "":
				free++
			case l.Owner != session(0):
				owned++
			}
		}
		equal(e, "finished, owned, free", [3]int{finished, owned, free}, [3]int{manyLeases / 10, manyLeases * 9 / 10, manyLeases / 5})
		total := 0
		for w := 1; w < manyWorkers; w++ {
			total += len(e.beat(session(w)).Held)
		}
		equal(e, "held by the heirs", total, manyLeases*9/10)
	}},
}
