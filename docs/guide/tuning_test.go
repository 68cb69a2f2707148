package guide

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/weirtest"
)

// soon is for a few shards with low latency.
var soon = weir.Options{
	Streams: []string{"orders"}, App: "billing",
	Polling: weir.Polling{IdleInterval: 200 * time.Millisecond}, // the minimum: all five reads a second of each shard
}

// many is for thousands of shards with little traffic, on few workers.
var many = weir.Options{
	Streams: []string{"clicks"}, App: "counts",
	// a fifth of the reads; a record waits up to this long
	Polling: weir.Polling{IdleInterval: 5 * time.Second},
	Timing: weir.Timing{
		HeartbeatInterval: 3 * time.Second,  // a third of the store's traffic
		ListInterval:      10 * time.Minute, // splits and merges are still found at their parents' ends
	},
	MaxMemory: 512 << 20, // bytes, for all shards of this worker
}

// polite shares the stream with one other polling application.
var polite = weir.Options{Streams: []string{"orders"}, App: "reports", Polling: weir.Polling{Share: 0.5}}

// patientStore tolerates outages of the store of up to ten seconds.
var patientStore = weir.Options{Streams: []string{"orders"}, App: "billing", Timing: weir.Timing{FailoverAfter: 20 * time.Second}}

func TestTunedOptionsAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := shop(t, 1)
		for _, o := range []weir.Options{soon, many, polite, patientStore} {
			if _, err := weir.New(srv.Client(), memstore.New(), o); err != nil {
				t.Errorf("%s: %v", o.App, err)
			}
		}
	})
}

// The page claims about IdleInterval: a record waits for at most one interval and the call.
func TestARecordWaitsForAnIdleInterval(t *testing.T) {
	for _, idle := range []time.Duration{200 * time.Millisecond, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			srv := shop(t, 1)
			options := billing
			options.Polling.IdleInterval = idle
			worst := time.Duration(0)
			worker := weirtest.Start(t, srv.Client(), memstore.New(), options, weir.RecordFunc(func(_ context.Context, r weir.Record) error {
				worst = max(worst, time.Since(r.ArrivalTime()))
				return nil
			}))
			worker.Until(weirtest.AtTip(srv, "orders", worker))
			for range 50 {
				time.Sleep(7300 * time.Millisecond)
				srv.Put("orders", "customer-7", []byte("x"))
			}
			worker.Until(weirtest.Handled(50, worker))
			worker.Stop()
			if worst > idle+50*time.Millisecond {
				t.Errorf("with IdleInterval %v a record waited for %v", idle, worst)
			}
		})
	}
}

// The page claims: a store outage shorter than half of FailoverAfter stops no handler.
func TestAStoreThatIsAwayForTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := shop(t, 1)
		store := &away{Store: memstore.New()}
		worker := weirtest.Start(t, srv.Client(), store, patientStore, new(bank).till())
		worker.Until(weirtest.AtTip(srv, "orders", worker))
		store.until.Store(time.Now().Add(9 * time.Second))
		for range 9 {
			time.Sleep(time.Second)
			srv.Put("orders", "customer-7", []byte(`{"ID": "o-1"}`))
		}
		worker.Until(weirtest.Handled(9, worker))
		if c := worker.Consumer.Counts(); c.LeasesEnded != 0 || c.StoreFailures == 0 {
			t.Errorf("%d leases ended, and %d calls of the store failed", c.LeasesEnded, c.StoreFailures)
		}
		worker.Stop()
	})
}

// away is a store that fails until a time.
type away struct {
	lease.Store
	until atomic.Value // a time.Time
}

func (s *away) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	if until, _ := s.until.Load().(time.Time); time.Now().Before(until) {
		return lease.Orders{}, errors.New("the store is away")
	}
	return s.Store.Heartbeat(ctx, app, r)
}
