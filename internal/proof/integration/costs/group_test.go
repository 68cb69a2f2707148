// Package costs_test measures the cost of coordination with the servers' own counters. It measures
// idle groups of several sizes, events, and twenty real workers.
package costs_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// cost contains the counts of the server and the client.
type cost struct {
	requests int            // round trips
	kinds    map[string]int // number of requests by kind
	writes   float64        // write units, or written rows
	reads    float64        // read units, or read rows
}

// said formats the kinds of requests, sorted by name.
func (c cost) said() string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(c.kinds)) {
		all = append(all, fmt.Sprintf("%d %s", c.kinds[k], k))
	}
	return strings.Join(all, ", ")
}

// measured is a store with a meter. The meter returns the cost of do.
type measured struct {
	t testing.TB
	lease.Store
	meter func(do func()) cost
}

const app = "billing"

// members is a balanced group in the store. Session 0 leads, and the other sessions know that.
type members struct {
	measured
	leases, sessions int
	view             lease.View
	held             []lease.Lease // leases of session 1
}

func session(i int) string {
	return fmt.Sprintf("worker-with-a-usual-name-%03d.01J9ZQ5V8K7X3M2N4P6R8T0W", i)
}

func at(t testing.TB, i int) shard.Position {
	t.Helper()
	p, err := shard.After(fmt.Sprintf("495903382714902564308300%032d", i))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// assemble creates a group.
func assemble(m measured, leases, sessions int) *members {
	m.t.Helper()
	return assembleAt(m, leases, sessions, func(i int) shard.Position { return at(m.t, i) })
}

// assembleAt creates a group whose leases have the given positions.
func assembleAt(m measured, leases, sessions int, position func(i int) shard.Position) *members {
	m.t.Helper()
	g := &members{measured: m, leases: leases, sessions: sessions}
	for i := range sessions {
		g.beat(i, func(r *lease.Report) { r.First = true })
	}
	var create, assign []lease.Action
	for i := range leases {
		k := lease.Key{Stream: "orders", Shard: fmt.Sprintf("shardId-%012d", i)}
		create = append(create, lease.Action{Kind: lease.Create, Lease: lease.Lease{
			Key: k, Epoch: 1, Position: position(i), Range: shard.HashRange{End: shard.MaxHashKey},
		}})
		assign = append(assign, lease.Action{Kind: lease.Assign, Key: k, Epoch: 1, Session: session(i % sessions)})
	}
	g.apply(create...)
	if ok, err := g.Lead(context.Background(), app, session(0), 0); err != nil || !ok {
		m.t.Fatal(ok, err)
	}
	g.apply(assign...)
	for range 2 {
		for i := range sessions {
			o := g.beat(i)
			if i == 1 {
				g.held = o.Held
			}
		}
	}
	if len(g.held) != leases/sessions {
		m.t.Fatalf("session 1 holds %d leases", len(g.held))
	}
	g.look()
	return g
}

func (g *members) beat(i int, change ...func(*lease.Report)) lease.Orders {
	g.t.Helper()
	r := lease.Report{Session: session(i), Name: session(i)[:28], Holds: 1 << 63, Others: true}
	for _, f := range change {
		f(&r)
	}
	o, err := g.Heartbeat(context.Background(), app, r)
	if err != nil {
		g.t.Fatal(err)
	}
	return o
}

func (g *members) apply(actions ...lease.Action) {
	g.t.Helper()
	// Use several calls, because test servers are slow and a call has a time limit.
	for some := range slices.Chunk(actions, 500) {
		done, err := g.Apply(context.Background(), app, some)
		if err != nil {
			g.t.Fatal(err)
		}
		if i := slices.Index(done, false); i >= 0 {
			g.t.Fatalf("refused: %s", some[i])
		}
	}
}

// look reads the view of the leader.
func (g *members) look() {
	g.t.Helper()
	before := g.view.Leases
	v, err := g.View(context.Background(), app, g.view.Revision)
	if err != nil {
		g.t.Fatal(err)
	}
	if v.Same {
		v.Leases = before
	}
	if g.view = v; len(v.Leases) != g.leases {
		g.t.Fatalf("a look shows %d leases", len(v.Leases))
	}
}

// idle is the cost of a group in which nothing happens.
type idle struct {
	beat, leads, look, full cost
}

// idling measures the cost of an idle group. The cost of a heartbeat is the mean over all workers
// except the leader.
func (g *members) idling() (c idle) {
	g.t.Helper()
	all := g.meter(func() {
		for i := 1; i < g.sessions; i++ {
			g.beat(i)
		}
	})
	c.beat = all
	c.beat.writes /= float64(g.sessions - 1)
	c.beat.reads /= float64(g.sessions - 1)
	c.beat.requests /= g.sessions - 1
	c.leads = g.meter(func() { g.beat(0) })
	c.look = g.meter(g.look)
	if !g.view.Same {
		g.t.Error("a look finds something new although nothing has happened")
	}
	g.view.Revision = ""
	c.full = g.meter(g.look)
	g.look()
	return c
}

// perHour returns the cost of a group in an hour in which nothing happens. interval is the
// heartbeat interval in seconds. Heartbeats are up to a tenth early, so on average they come after
// 19/20 of the interval. The leader reads twice in each interval, and reads everything each half
// minute.
func (c idle) perHour(workers int, interval float64) (requests, writes, reads float64) {
	beats, looks, fulls := 3600/interval*20/19, 7200/interval, 120.0
	others := beats * float64(workers-1)
	sum := func(of func(cost) float64) float64 {
		return others*of(c.beat) + beats*of(c.leads) + (looks-fulls)*of(c.look) + fulls*of(c.full)
	}
	return sum(func(c cost) float64 { return float64(c.requests) }), sum(func(c cost) float64 { return c.writes }),
		sum(func(c cost) float64 { return c.reads })
}

// groupEvent is an event in a group. Only the cost of do is measured, without other heartbeats and
// views.
type groupEvent struct {
	name string
	do   func()
}

// events returns the events. They are measured one after the other, in this order.
func (g *members) events() []groupEvent {
	one, other := g.held[0], g.held[1]
	all := func(r *lease.Report) {
		for i, l := range g.held {
			r.Progress = append(r.Progress, lease.Progress{Key: l.Key, Epoch: l.Epoch, Position: at(g.t, 1_000_000+i)})
		}
	}
	newcomer := g.sessions
	return []groupEvent{
		{"a heartbeat with one checkpoint", func() {
			g.beat(1, func(r *lease.Report) {
				r.Progress = []lease.Progress{{Key: one.Key, Epoch: one.Epoch, Position: at(g.t, 900_000)}}
			})
		}},
		{fmt.Sprintf("a heartbeat with %d checkpoints", len(g.held)), func() { g.beat(1, all) }},
		{"a heartbeat that gives a lease back to nobody", func() {
			g.beat(1, func(r *lease.Report) { r.Progress = []lease.Progress{{Key: one.Key, Epoch: one.Epoch, Release: true}} })
		}},
		{"the leader's next look", g.look},
		{"the leader gives it to somebody", func() {
			g.apply(lease.Action{Kind: lease.Assign, Key: one.Key, Epoch: one.Epoch + 1, Session: session(2)})
		}},
		{"the next heartbeat of who got it", func() { g.beat(2) }},
		{"the leader's next look", g.look},
		{"the leader wants a lease handed on", func() {
			g.apply(lease.Action{Kind: lease.Handoff, Key: other.Key, Epoch: other.Epoch, Session: session(3)})
		}},
		{"the owner's next heartbeat", func() { g.beat(1) }},
		{"the owner's heartbeat that hands it on", func() {
			g.beat(1, func(r *lease.Report) {
				r.Progress = []lease.Progress{{Key: other.Key, Epoch: other.Epoch, Position: at(g.t, 2_000_000), Release: true}}
			})
		}},
		{"the heir's next heartbeat", func() { g.beat(3) }},
		{"the leader's next look", g.look},
		{"a worker's first heartbeat", func() { g.beat(newcomer, func(r *lease.Report) { r.First = true }) }},
		{"a worker leaves", func() {
			if err := g.Leave(context.Background(), app, lease.Report{Session: session(newcomer)}); err != nil {
				g.t.Fatal(err)
			}
		}},
	}
}

// show prints a line of a table.
func show(t testing.TB, what string, c cost, writes, reads string) {
	t.Helper()
	t.Logf("%-44s %4d requests %8.1f %s %8.1f %s   %s", what, c.requests, c.writes, writes, c.reads, reads, c.said())
}

// grows fails the test if a cost is larger than one part for the leases plus one part for the
// workers. A cost that grows with the product of both would be larger.
func grows(t testing.TB, what string, of func(leases, workers int) float64) {
	t.Helper()
	few, many, small, large := 5, 20, 100, 1000
	if extra := of(large, many) - of(large, few) - of(small, many) + of(small, few); extra > 0.5+of(large, many)/100 {
		t.Errorf("%s grows with leases × workers: %v for %d×%d, %v for %d×%d, %v for %d×%d, %v for %d×%d", what,
			of(small, few), small, few, of(large, few), large, few, of(small, many), small, many, of(large, many), large, many)
	}
}
