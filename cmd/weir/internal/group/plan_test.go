package group

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// The command computes the plan that the leader will make, so it uses the times of the leader.
func TestPlanGoesByTheLeadersTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		ctx := t.Context()
		times := lease.Times{Heartbeat: 6 * time.Second, Failover: 20 * time.Second, Handoff: time.Minute}
		for _, s := range []string{"A", "B"} {
			if _, err := mem.Heartbeat(ctx, "a", lease.Report{Session: s, First: true, Times: times}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := mem.Lead(ctx, "a", "A", 0); err != nil {
			t.Fatal(err)
		}
		first, err := mem.View(ctx, "a", "")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		var beating sync.WaitGroup
		beating.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(times.Heartbeat):
					_, _ = mem.Heartbeat(ctx, "a", lease.Report{Session: "A"})
				}
			}
		})
		began := time.Now()
		o := planOptions{Flags: target.Flags{App: "a"}}
		_, facts, err := o.observe(ctx, stores.Store{Store: mem}, first)
		close(done)
		beating.Wait()
		if _, dead := facts.Dead["B"]; err != nil || !dead || len(facts.Dead) != 1 {
			t.Errorf("dead are %v, %v, want B alone", facts.Dead, err)
		}
		if took := time.Since(began); took < times.Failover || took > times.Failover+time.Second {
			t.Errorf("it took %v to see that", took)
		}
	})
}
