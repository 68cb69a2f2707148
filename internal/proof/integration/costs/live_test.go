package costs_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/dynamostore"
)

// TestTwentyWorkersOnAThousandLeases runs whole consumers without records for a while, and counts
// their requests.
func TestTwentyWorkersOnAThousandLeases(t *testing.T) {
	const leases, workers = 1000, 20
	const promised = 80_000 // write units per hour
	// history is the part for the history, which TestHistoryOnDynamoDB measures separately.
	const history = 2000
	// A worker with a heartbeat each second may send 21 of them within 20 s. In a shorter time,
	// this alone could exceed the limit.
	length := 20 * time.Second
	if *full {
		length = time.Minute
	}
	s := servers.DynamoDBLocal(t)
	srv := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true})
	srv.CreateStream("orders", leases)
	_, meter := dynamo(t, s, "live")

	ctx, cancel := context.WithCancel(t.Context())
	// failures counts failed calls to the store. After a failure, a worker retries and reads its
	// leases again.
	var failures atomic.Int32
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	start := func(i int) (stop context.CancelFunc) {
		ctx, stop := context.WithCancel(ctx)
		// Each worker has its own store, like a separate process.
		store := dynamostore.New(s.DynamoDB(meter.Options), dynamostore.Options{Table: "live"})
		c, err := weir.New(srv.Client(), store, weir.Options{
			App: app, Streams: []string{"orders"}, Worker: session(i)[:28], Polling: weir.Polling{IdleInterval: time.Minute}, NoHistory: true,
			Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
			OnEvent: event.On(func(_ context.Context, f event.StoreFailed) {
				if failures.Add(1) <= 20 {
					t.Logf("%s: %v", f.Op, f.Err)
				}
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			if err := c.Run(ctx, weir.HandlerFunc(func(context.Context, *weir.Batch) error { return nil })); err != nil {
				t.Error(err)
			}
		})
		return stop
	}
	looking := dynamostore.New(s.DynamoDB(), dynamostore.Options{Table: "live"}) // without a meter
	shared := func(workers int) time.Duration {
		t.Helper()
		began := time.Now()
		every := time.NewTicker(100 * time.Millisecond)
		defer every.Stop()
		for ; ; <-every.C {
			v, err := looking.View(t.Context(), app, "")
			if err != nil {
				t.Fatal(err)
			}
			if even(v, leases, workers) {
				return time.Since(began)
			}
			if time.Since(began) > 2*time.Minute {
				t.Fatal("the leases are not shared after two minutes")
			}
		}
	}
	for i := range workers {
		start(i)
	}
	shared(workers)
	settled := time.NewTimer(5 * time.Second) // until every worker knows the leases and sends no more early heartbeats
	<-settled.C

	var took time.Duration
	var c cost
	perHour := func(n float64) float64 { return n * float64(time.Hour) / float64(took) }
	for range 6 {
		// The limit is for idle workers. If the machine stalls for seconds, calls fail and are
		// repeated, and leases may move late. A measurement during such a stall proves nothing, so
		// it is repeated. The last measurement counts.
		failures.Store(0)
		before := holders(t, looking)
		meter.Take()
		began := time.Now()
		over := time.NewTimer(length)
		<-over.C
		took, c = time.Since(began), ofCapacity(meter.Take())
		moved := before.moved(holders(t, looking))
		if failures.Load() == 0 && len(moved) == 0 {
			break
		}
		t.Logf("%s; %d calls failed meanwhile, %d leases or sessions changed: %.2000v", c.said(), failures.Load(), len(moved), moved)
	}
	t.Logf("%d idle workers on %d leases for %v: %s; %.0f write units, %.0f read units", workers, leases, took.Round(time.Second),
		c.said(), c.writes, c.reads)
	t.Logf("per hour: %.0f requests, %.0f write units (promised: %d at most), %.0f read units", perHour(float64(c.requests)), perHour(c.writes), promised, perHour(c.reads))
	if perHour(c.writes)+history > promised {
		t.Errorf("%.0f writes per hour", perHour(c.writes))
	}
	if c.writes != float64(c.kinds["UpdateItem"]) || c.kinds["Scan"]+c.kinds["PutItem"]+c.kinds["DeleteItem"] > 0 {
		t.Errorf("idle workers ask for %s", c.said())
	}
	if beats := float64(workers) * took.Seconds(); c.writes < beats/4 {
		t.Errorf("only %.0f writes in %v: these workers do not send heartbeats", c.writes, took)
	}

	// The cost of a change is the consumption until everything is quiet again, minus the idle cost
	// in that time.
	idle := c
	change := func(what string, workers int, do func()) {
		t.Helper()
		meter.Take()
		began := time.Now()
		do()
		balanced := shared(workers)
		quiet := time.NewTimer(5 * time.Second)
		<-quiet.C
		c, part := ofCapacity(meter.Take()), float64(time.Since(began))/float64(took)
		t.Logf("%s: balanced after %v; %.0f write units, %.0f read units, %.0f requests beside idling", what, balanced.Round(100*time.Millisecond),
			c.writes-part*idle.writes, c.reads-part*idle.reads, float64(c.requests)-part*float64(idle.requests))
	}
	var stop context.CancelFunc
	change("one more joins", workers+1, func() { stop = start(workers) })
	change("one stops", workers, func() { stop() })
}

func even(v lease.View, leases, workers int) bool {
	held := map[string]int{}
	for _, l := range v.Leases {
		if l.Owner == "" || l.Heir != "" {
			return false
		}
		held[l.Owner]++
	}
	for _, n := range held {
		if n < leases/workers || n > (leases+workers-1)/workers {
			return false
		}
	}
	return len(v.Leases) == leases && len(held) == workers
}

// held maps leases to their owners. It also lists the sessions.
type held map[string]string

func holders(t *testing.T, store lease.Store) held {
	t.Helper()
	v, err := store.View(t.Context(), app, "")
	if err != nil {
		t.Fatal(err)
	}
	h := held{"leader": v.Leader.Session}
	for _, l := range v.Leases {
		h[l.Shard] = fmt.Sprintf("%s at epoch %d, heir %q, revoked %q, position %s", l.Owner, l.Epoch, l.Heir, l.Revoked, l.Position)
	}
	for _, w := range v.Workers {
		h[w.Session] = fmt.Sprintf("ended %t, leaving %t, drained %t, troubles %v", w.Ended, w.Leaving, w.Drain, w.Troubles)
	}
	return h
}

// moved returns the differences between two moments.
func (h held) moved(now held) (all []string) {
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if h[key] != now[key] {
			all = append(all, fmt.Sprintf("%s: %s, and then %s", key, h[key], now[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(h)) {
		if _, still := now[key]; !still {
			all = append(all, key+" is gone")
		}
	}
	return all
}
