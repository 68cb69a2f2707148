package scenario_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// counted is a store that counts calls and delays them.
type counted struct {
	lease.Store
	beats, views, fullViews, applies, actions atomic.Int64
}

func (c *counted) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	c.beats.Add(1)
	time.Sleep(time.Millisecond + rand.N(9*time.Millisecond))
	return c.Store.Heartbeat(ctx, app, r)
}

func (c *counted) View(ctx context.Context, app, since string) (lease.View, error) {
	time.Sleep(time.Millisecond + rand.N(9*time.Millisecond))
	v, err := c.Store.View(ctx, app, since)
	c.views.Add(1)
	if !v.Same {
		c.fullViews.Add(1)
	}
	return v, err
}

func (c *counted) Apply(ctx context.Context, app string, a []lease.Action) ([]bool, error) {
	c.applies.Add(1)
	c.actions.Add(int64(len(a)))
	time.Sleep(time.Millisecond + rand.N(9*time.Millisecond))
	return c.Store.Apply(ctx, app, a)
}

// TestTenThousandLeases runs a hundred workers with ten thousand leases, or without -full ten with
// 500. There are no records, so it measures only coordination.
func TestTenThousandLeases(t *testing.T) {
	leases, workers := size(500, 10_000), size(10, 100)
	store := &counted{Store: memstore.New()}
	var views []lease.View // for the plans below
	var spread, idleMessages, idleFull, taken []int
	var memory uint64
	synctest.Test(t, func(t *testing.T) {
		var listing group.Listing
		for i := range leases {
			listing.Shards = append(listing.Shards, shard.Shard{ID: fmt.Sprintf("shardId-%012d", i)})
		}
		view := func() lease.View {
			v, err := store.Store.View(t.Context(), "app", "")
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		var takes atomic.Int64
		done := make(chan error, workers+1)
		ctx, cancel := context.WithCancel(t.Context())
		start := func(i int) context.CancelFunc {
			ctx, cancel := context.WithCancel(ctx)
			go func() {
				done <- group.Run(ctx, group.Config{
					Store: store, App: "app", Worker: fmt.Sprintf("w%d", i), Weight: 1,
					Times: lease.Times{Heartbeat: beat, Failover: failover, Handoff: 30 * time.Second}, Stop: 10 * time.Second,
					Streams: []string{"s"}, Start: shard.Oldest, ListInterval: time.Minute,
					Host: &group.HostFuncs{
						OnList: func(context.Context, string, shard.Position) (group.Listing, error) { return listing, nil },
						OnRead: func(t *group.Term) error {
							takes.Add(1)
							<-t.Reading().Done()
							return nil
						},
					},

					Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
				})
			}()
			return cancel
		}
		even := func(workers int) bool {
			held := map[string]int{}
			for _, l := range view().Leases {
				if l.Owner == "" || l.Heir != "" {
					return false
				}
				held[l.Owner]++
			}
			for _, n := range held {
				if n < leases/workers || n > leases/workers+1 {
					return false
				}
			}
			return len(held) == workers
		}
		until := func(what string, workers int) time.Duration {
			began := time.Now()
			for !even(workers) {
				if time.Since(began) > time.Minute {
					t.Fatalf("%s: not within a minute", what)
				}
				time.Sleep(50 * time.Millisecond)
			}
			return time.Since(began)
		}
		before := heap()
		stops := make([]context.CancelFunc, workers)
		for i := range workers {
			stops[i] = start(i)
		}
		what := fmt.Sprintf("%d workers start at once on %d leases: balanced after", workers, leases)
		if !table.Add(what, []time.Duration{until(what, workers)}, 10*beat) {
			t.Error("this took too long")
		}
		time.Sleep(10 * time.Second)
		memory = heap() - before
		views = append(views, view())

		const minutes = 1
		beats, looks, fulls, applied := store.beats.Load(), store.views.Load(), store.fullViews.Load(), store.applies.Load()
		time.Sleep(minutes * time.Minute)
		idleMessages = append(idleMessages, int(store.beats.Load()-beats+store.views.Load()-looks)/(60*minutes))
		idleFull = append(idleFull, int(store.fullViews.Load()-fulls))
		if n := store.applies.Load() - applied; n > 0 {
			t.Errorf("while nothing happened the leader wrote %d times", n)
		}

		was := takes.Load()
		stops[workers-1]()
		if !table.Add("  one stops: balanced after", []time.Duration{until("one stops", workers-1)}, 5*beat) {
			t.Error("this took too long")
		}
		time.Sleep(3 * beat) // until the other workers know that it has left
		was2 := takes.Load()
		start(workers)
		if !table.Add("  one joins: balanced after", []time.Duration{until("one joins", workers)}, 5*beat) {
			t.Error("this took too long")
		}
		time.Sleep(3 * beat)
		taken = append(taken, int(was2-was), int(takes.Load()-was2))
		views = append(views, view())
		for _, n := range held(view()) {
			spread = append(spread, n)
		}
		cancel()
		for range workers + 1 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
	most := (leases + workers - 2) / (workers - 1) // maximum number of leases of the stopped worker
	if !table.Count("  leases that changed hands by the stop, and by the join", taken, most) {
		t.Errorf("%v leases changed hands, want at most %d", taken, most)
	}
	table.Count("  leases of a worker", spread, leases/workers+min(leases%workers, 1))
	// Each worker sends 1 to 1.11 heartbeats a second, and the leader reads twice as often.
	if !table.Count("  messages to the store per second, idle", idleMessages, workers*10/9+4) {
		t.Errorf("%v messages per second", idleMessages)
	}
	if !table.Count("  of those of a minute, reads of all leases", idleFull, 3) {
		t.Errorf("the leader reads all leases %v times in a minute", idleFull)
	}
	table.Count("  memory of all workers and the store together, KiB per lease", []int{int(memory) / 1024 / leases}, -1)
	planTimes(t, views[0], workers)
}

func held(v lease.View) map[string]int {
	n := map[string]int{}
	for _, l := range v.Leases {
		n[l.Owner]++
	}
	return n
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// planTimes measures how long one plan takes, on the clock of the machine: for a balanced group,
// for a group with a missing worker, and at the start.
func planTimes(t *testing.T, v lease.View, workers int) {
	fresh := v
	fresh.Leases = append([]lease.Lease(nil), v.Leases...)
	for i := range fresh.Leases {
		fresh.Leases[i].Owner, fresh.Leases[i].Last = "", ""
	}
	ended := v
	ended.Workers = append([]lease.Worker(nil), v.Workers...)
	ended.Workers[workers/2].Ended = true
	for _, c := range []struct {
		what string
		view lease.View
		some bool // the plan has actions
	}{{"nothing to do", v, false}, {"a worker has died", ended, true}, {"all leases are free", fresh, true}} {
		var each []time.Duration
		for range 11 {
			began := time.Now()
			actions := lease.Plan(c.view, lease.Facts{}, lease.Limits{})
			each = append(each, time.Since(began))
			if (len(actions) > 0) != c.some {
				t.Errorf("%s: %d actions", c.what, len(actions))
			}
		}
		// The limit is only for the table. No test depends on the speed of this machine.
		table.Add("  one plan of all leases, "+c.what+", on the machine's clock", each, beat/4)
	}
}
