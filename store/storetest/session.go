package storetest

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

var sessionCases = []testCase{
	{"an unused application is empty", func(e *env) {
		equal(e, "view", canon(e.view()), `leader "" term 0`)
	}},
	{"the first heartbeat makes the row of the session", func(e *env) {
		o := e.report(lease.Report{Session: "a", Name: "alpha", First: true})
		e.held(o)
		equal(e, "leader", o.Leader, lease.Leader{})
		w, ok := e.worker("a")
		if !ok || w.Heartbeats == 0 {
			e.Fatalf("worker = %+v, %t", w, ok)
		}
		w.Heartbeats = 0
		equal(e, "worker", w, lease.Worker{Session: "a", Name: "alpha", Weight: 1})
	}},
	{"a heartbeat of an unknown session is over and makes no row", func(e *env) {
		e.must(create("1"), assign("1", 1, "a"))
		e.unchanged(func() {
			e.over(lease.Report{Session: "a", Progress: []lease.Progress{at("1", 2, seq(7))}})
		})
	}},
	{"each heartbeat moves the heartbeat count", func(e *env) {
		e.start("a")
		var last uint64
		for range 3 {
			w, _ := e.worker("a")
			if w.Heartbeats <= last {
				e.Fatalf("heartbeat count %d after %d", w.Heartbeats, last)
			}
			last = w.Heartbeats
			e.beat("a")
		}
	}},
	{"a heartbeat leaves the heartbeat counts of others", func(e *env) {
		e.start("a", "b")
		before, _ := e.worker("b")
		e.beat("a")
		after, _ := e.worker("b")
		equal(e, "b", after, before)
	}},
	{"a repeated first heartbeat is an ordinary heartbeat", func(e *env) {
		e.start("a")
		e.must(create("1"), assign("1", 1, "a"))
		e.held(e.report(lease.Report{Session: "a", First: true}), k("1"))
		equal(e, "workers", len(e.view().Workers), 1)
	}},
	{"each heartbeat records the whole report", func(e *env) {
		e.start("a")
		for _, r := range []lease.Report{
			{Session: "a", Name: "first", Leaving: true, Weight: 2.5, MaxLeases: 7, Holds: math.MaxUint64},
			{Session: "a", Name: "second", Weight: 0.001, MaxLeases: math.MaxInt32, Holds: 1 << 63},
			{Session: "a", Weight: 1e9, Holds: 1},
			{Session: "a", Name: "weight 0 counts as 1"},
		} {
			e.report(r)
			w, _ := e.worker("a")
			want := lease.Worker{Session: "a", Name: r.Name, Leaving: r.Leaving, Weight: r.Weight, MaxLeases: r.MaxLeases, Holds: r.Holds}
			if want.Weight == 0 {
				want.Weight = 1
			}
			w.Heartbeats = 0
			equal(e, "worker", w, want)
		}
	}},
	{"a first heartbeat says the times, and no other", func(e *env) {
		said := lease.Times{Heartbeat: 250 * time.Millisecond, Failover: 90 * time.Second, Handoff: 24 * time.Hour}
		times := func(session string, want lease.Times) {
			e.Helper()
			w, _ := e.worker(session)
			equal(e, "times of "+session, w.Times, want)
		}
		e.report(lease.Report{Session: "a", First: true, Times: said})
		times("a", said)
		e.report(lease.Report{Session: "a", Times: lease.DefaultTimes})
		e.beat("a")
		times("a", said)
		e.report(lease.Report{Session: "a", First: true})
		times("a", lease.Times{})
		e.report(lease.Report{Session: "a", First: true, Times: said})
		e.must(drain("a", true))
		e.end("a")
		times("a", said)

		e.start("b")
		e.report(lease.Report{Session: "b", Times: said})
		times("b", lease.Times{})
		for i, none := range []lease.Times{{Heartbeat: -1, Failover: 5e9, Handoff: 5e9}, {Heartbeat: 5e9, Failover: 1e9, Handoff: 5e9}, {Heartbeat: 1, Failover: 1e9, Handoff: 1e9},
			{Heartbeat: 1e9, Failover: 5e9, Handoff: math.MaxInt64}} {
			session := strconv.Itoa(i)
			e.report(lease.Report{Session: session, First: true, Times: none})
			times(session, lease.Times{})
		}
		e.report(lease.Report{Session: "c", First: true, Times: lease.Times{Heartbeat: 1e9 + 999, Failover: 5e9, Handoff: 30e9}})
		times("c", lease.DefaultTimes)
	}},
	{"a weight that is not a number does no harm", func(e *env) {
		for _, weight := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			// An error is as good as a corrected value.
			_, err := e.store.Heartbeat(e.ctx, e.app, lease.Report{Session: "a", First: true, Weight: weight})
			if errors.Is(err, lease.ErrSessionOver) {
				e.Error(err)
			}
			e.view()
		}
		e.start("a")
		e.beat("a")
	}},
	{"the first heartbeat may carry progress", func(e *env) {
		// If the first heartbeat of a worker returned an error, the worker cannot know that it
		// already has leases.
		e.start("a")
		e.must(create("1"), assign("1", 1, "a"))
		e.held(e.report(lease.Report{Session: "a", First: true, Progress: []lease.Progress{at("1", 2, seq(5))}}), k("1"))
		l, _ := e.find(k("1"))
		equal(e, "position", l.Position, seq(5))
	}},
	{"an ended session is over and its heartbeats change nothing", func(e *env) {
		e.start("a", "b")
		e.must(create("1"), assign("1", 1, "a"), handoff("1", 2, "b"), create("2"), assign("2", 1, "a"), create("3"), assign("3", 1, "a"))
		e.beat("a", at("1", 2, seq(5)))
		e.end("a")
		was, _ := e.worker("a")
		if !was.Ended {
			e.Fatalf("worker = %+v", was)
		}
		e.unchanged(func() {
			for _, first := range []bool{false, true} {
				e.over(lease.Report{Session: "a", Name: "other", First: first, Leaving: true, Weight: 9, MaxLeases: 9, Holds: 9,
					Progress: []lease.Progress{
						{Key: k("1"), Epoch: 2, Position: seq(9), Release: true},
						at("2", 2, seq(9)),
						{Key: k("3"), Epoch: 2, Position: shard.End, Children: []shard.Shard{{ID: "4", Parents: []string{"3"}}}},
					}})
			}
		})
		is, _ := e.worker("a")
		equal(e, "heartbeat count", is.Heartbeats, was.Heartbeats)
	}},
	{"a forgotten session may begin again without leases", func(e *env) {
		e.start("a")
		e.end("a")
		e.must(forget("a"))
		e.over(lease.Report{Session: "a"})
		e.start("a")
		e.held(e.beat("a"))
	}},
	{"a report without a session is refused", func(e *env) {
		e.must(create("1"))
		e.unchanged(func() {
			r := lease.Report{First: true, Progress: []lease.Progress{{Key: k("1"), Epoch: 1, Position: seq(1), Release: true}}}
			if o, err := e.store.Heartbeat(e.ctx, e.app, r); err == nil {
				e.Errorf("Heartbeat without a session = %+v", o)
			}
			if err := e.store.Leave(e.ctx, e.app, r); err == nil {
				e.Error("Leave without a session reports no error")
			}
		})
	}},
	{"orders are the session's leases in full, sorted, and no others", func(e *env) {
		e.start("a", "b")
		full := lease.Lease{Key: k("3"), Parents: []string{"1", "2"}, Range: upper, Epoch: 1, Position: seq(12)}
		e.must(create("2"), assign("2", 1, "a"), create("10"), assign("10", 1, "a"), create("1"), assign("1", 1, "b"),
			lease.Action{Kind: lease.Create, Lease: full}, assign("3", 1, "a"), handoff("3", 2, "b"),
			create("free"), create("taken"), assign("taken", 1, "a"), revoke("taken", 2))
		o := e.beat("a")
		e.held(o, k("10"), k("2"), k("3"))
		full.Epoch, full.Owner, full.Last, full.Heir = 2, "a", "a", "b"
		equal(e, "lease", describe(o.Held[2]), describe(full))
		e.held(e.beat("b"), k("1"))
	}},
	{"a cancelled context ends each call with its error", func(e *env) {
		e.start("a")
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()
		calls := map[string]func() error{
			"Heartbeat": func() error { _, err := e.store.Heartbeat(ctx, e.app, lease.Report{Session: "a"}); return err },
			"View":      func() error { _, err := e.store.View(ctx, e.app, ""); return err },
			"Apply":     func() error { _, err := e.store.Apply(ctx, e.app, []lease.Action{create("1")}); return err },
			"Lead":      func() error { _, err := e.store.Lead(ctx, e.app, "a", 0); return err },
			"Leave":     func() error { return e.store.Leave(ctx, e.app, lease.Report{Session: "a"}) },
		}
		for name, call := range calls {
			if err := call(); !errors.Is(err, context.Canceled) || errors.Is(err, lease.ErrSetup) || errors.Is(err, lease.ErrSessionOver) {
				e.Errorf("%s = %v, want context.Canceled", name, err)
			}
		}
		e.beat("a") // the store still works
	}},
}
