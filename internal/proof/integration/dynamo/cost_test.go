package dynamo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/capacity"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/dynamostore"
)

// TestWhatItCosts prints capacity units for 20 workers with 1,000 leases. It checks the costs of
// heartbeats and of a view without changes. An idle heartbeat costs one write and at most two
// reads.
func TestWhatItCosts(t *testing.T) {
	const leases, workers = 1000, 20
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			s := kind.start(t)
			open(t, s, "costs")
			m := &capacity.Meter{}
			store := dynamostore.New(s.DynamoDB(m.Options), dynamostore.Options{Table: "costs"})
			ctx := t.Context()
			session := func(i int) string { return fmt.Sprintf("worker-with-a-usual-name-%02d.01J9ZQ5V8K7X3M2N4P6R8T0W", i) }
			report := func(i int, p ...lease.Progress) lease.Report {
				return lease.Report{Session: session(i), Name: fmt.Sprintf("worker-with-a-usual-name-%02d", i), Holds: 1 << 63, Progress: p}
			}
			beat := func(r lease.Report) lease.Orders {
				o, err := store.Heartbeat(ctx, "billing", r)
				if err != nil {
					t.Fatal(err)
				}
				return o
			}
			apply := func(actions []lease.Action) {
				if done, err := store.Apply(ctx, "billing", actions); err != nil || !done[0] {
					t.Fatal(done, err)
				}
			}
			show := func(what string, c capacity.Cost) {
				t.Logf("%-46s %7.1f write units %7.1f read units in %4d requests", what, c.Writes, c.Reads, c.Requests)
			}

			var create, assign []lease.Action
			for i := range leases {
				k := lease.Key{Stream: "orders", Shard: fmt.Sprintf("shardId-%012d", i)}
				p, err := shard.After(fmt.Sprintf("495903382714902564308300%032d", i))
				if err != nil {
					t.Fatal(err)
				}
				create = append(create, lease.Action{Kind: lease.Create, Lease: lease.Lease{Key: k, Epoch: 1, Position: p, Range: shard.HashRange{End: shard.MaxHashKey}}})
				assign = append(assign, lease.Action{Kind: lease.Assign, Key: k, Epoch: 1, Session: session(i % workers)})
			}
			show("first heartbeats of 20 workers", m.Of(func() {
				for i := range workers {
					r := report(i)
					r.First = true
					beat(r)
				}
			}))
			show("create 1,000 leases", m.Of(func() { apply(create) }))
			show("assign 1,000 leases to 20 workers", m.Of(func() { apply(assign) }))
			if ok, err := store.Lead(ctx, "billing", session(0), 0); err != nil || !ok {
				t.Fatal(ok, err)
			}
			var o lease.Orders
			show("heartbeat that reads 50 of 1,000 leases", m.Of(func() { o = beat(report(1)) }))
			if len(o.Held) != leases/workers {
				t.Fatalf("held %d leases", len(o.Held))
			}
			beat(report(0))

			idle := m.Of(func() { beat(report(1)) })
			show("idle heartbeat of a worker with 50 leases", idle)
			if idle.Writes != 1 || idle.Reads > 2 || idle.Requests > 2 {
				t.Errorf("an idle heartbeat costs %v writes and %v reads in %d requests", idle.Writes, idle.Reads, idle.Requests)
			}
			leader := m.Of(func() { beat(report(0)) })
			show("idle heartbeat of the leader", leader)
			if leader.Writes != 1 || leader.Reads > 1 {
				t.Errorf("an idle heartbeat of the leader costs %v writes and %v reads", leader.Writes, leader.Reads)
			}
			moved, err := shard.After("495903382714902564308309" + fmt.Sprintf("%032d", 1))
			if err != nil {
				t.Fatal(err)
			}
			one := m.Of(func() { beat(report(1, lease.Progress{Key: o.Held[0].Key, Epoch: o.Held[0].Epoch, Position: moved})) })
			show("heartbeat with one checkpoint", one)
			if one.Writes != 2 || one.Reads > 2 {
				t.Errorf("a heartbeat with one checkpoint costs %v writes and %v reads", one.Writes, one.Reads)
			}
			back := m.Of(func() {
				beat(report(1, lease.Progress{Key: o.Held[0].Key, Epoch: o.Held[0].Epoch, Release: true}))
			})
			show("heartbeat that releases one lease", back)
			if back.Writes > 3 || back.Reads > 4 {
				t.Errorf("a heartbeat that releases one lease costs %v writes and %v reads", back.Writes, back.Reads)
			}
			fresh := func(n int) (a []lease.Action) {
				for i := range n {
					a = append(a, lease.Action{Kind: lease.Handoff, Key: o.Held[10+i].Key, Epoch: o.Held[10+i].Epoch, Session: session(2)})
				}
				return a
			}
			show("one lease wanted elsewhere", m.Of(func() { apply(fresh(1)) }))
			heard := m.Of(func() { o = beat(report(1)) })
			show("the next heartbeat of its owner", heard)
			if heard.Writes != 1 || heard.Reads > 3 || o.Held[9].Heir != session(2) {
				t.Errorf("a heartbeat that hears of one lease costs %v writes and %v reads; it is %v", heard.Writes, heard.Reads, o.Held[9])
			}
			apply(fresh(8))
			show("the next heartbeat after eight are", m.Of(func() { o = beat(report(1)) }))
			apply(fresh(9))
			all := m.Of(func() { beat(report(1)) })
			show("the next heartbeat after nine are", all)
			if all.Reads < 100 {
				t.Errorf("a heartbeat that hears of nine leases costs %v reads", all.Reads)
			}
			worst := report(1)
			for i := range lease.MaxTroubles {
				worst.Troubles = append(worst.Troubles, lease.Trouble{Key: o.Held[i].Key, State: "stalled", Why: strings.Repeat("y", lease.MaxWhyBytes)})
			}
			trouble := m.Of(func() { beat(worst) })
			show("heartbeat with as many troubles as there may be", trouble)
			if trouble.Writes > 4 {
				t.Errorf("a heartbeat with troubles costs %v writes", trouble.Writes)
			}
			beat(report(1)) // removes them
			if well := m.Of(func() { beat(report(1)) }); well.Writes != 1 {
				t.Errorf("an idle heartbeat after troubles costs %v writes", well.Writes)
			}

			var v lease.View
			view := func() {
				if v, err = store.View(ctx, "billing", v.Revision); err != nil {
					t.Fatal(err)
				}
			}
			show("view in full", m.Of(view))
			same := m.Of(view)
			show("view when nothing changed", same)
			if !v.Same || same.Writes != 0 || same.Requests != 1 {
				t.Errorf("a view when nothing changed costs %v reads in %d requests, same=%t", same.Reads, same.Requests, v.Same)
			}
			perHour := idle.Writes * 3600 * workers
			t.Logf("idle, 1,000 leases, 20 workers, a heartbeat each second: %.0f writes per hour", perHour)
		})
	}
}
