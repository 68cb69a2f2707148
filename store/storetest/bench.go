package storetest

import (
	"crypto/rand"
	"fmt"
	"testing"

	"github.com/weir-go/weir/lease"
)

// Bench measures the frequent calls of a running application, with a thousand leases and twenty
// workers.
func Bench(b *testing.B, h Harness) {
	e := &env{TB: b, ctx: b.Context(), store: h.Open(b), app: "storetest-" + rand.Text()}
	var actions []lease.Action
	for i := range manyLeases {
		id := fmt.Sprintf("shardId-%012d", i)
		actions = append(actions, create(id), assign(id, 1, fmt.Sprint(i%manyWorkers)))
	}
	for i := range manyWorkers {
		e.start(fmt.Sprint(i))
	}
	e.must(actions...)
	held := e.beat("0").Held
	n := uint64(0) // checkpoints increase over all runs, so that each causes a write

	for _, leases := range []int{0, 1, 50} {
		b.Run(fmt.Sprintf("Heartbeat/progress=%d", leases), func(b *testing.B) {
			progress := make([]lease.Progress, leases)
			for b.Loop() {
				n++
				for i := range progress {
					progress[i] = lease.Progress{Key: held[i].Key, Epoch: held[i].Epoch, Position: seq(n)}
				}
				if o := e.beat("0", progress...); len(o.Held) != manyLeases/manyWorkers {
					b.Fatalf("held %d leases", len(o.Held))
				}
			}
		})
	}
	b.Run("View/full", func(b *testing.B) {
		for b.Loop() {
			if v := e.view(); len(v.Leases) != manyLeases {
				b.Fatalf("%d leases", len(v.Leases))
			}
		}
	})
	b.Run("View/idle", func(b *testing.B) {
		revision := e.view().Revision
		for b.Loop() {
			e.since(revision)
		}
	})
	b.Run(fmt.Sprintf("Apply/assigns=%d", manyLeases), func(b *testing.B) {
		leases := e.view().Leases
		actions := make([]lease.Action, len(leases))
		for i, l := range leases {
			actions[i] = lease.Action{Kind: lease.Assign, Key: l.Key, Epoch: l.Epoch, Session: l.Owner}
		}
		for b.Loop() {
			e.must(actions...)
			for i := range actions {
				actions[i].Epoch++
			}
		}
	})
}
