package storetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// needs restricts a case to stores with an ability.
func needs(a lease.Abilities, c testCase) testCase {
	return testCase{c.name, func(e *env) {
		if missing := e.store.Abilities().Missing(a); missing != 0 {
			e.Skip("the store lacks", missing)
		}
		c.run(e)
	}}
}

// asks sends a heartbeat that requests the heartbeat counts of the other sessions. It checks that
// the answer contains exactly the sessions in others, with the counts of a view.
func (e *env) asks(r lease.Report, others ...string) {
	e.Helper()
	r.Others = true
	o := e.report(r)
	counts := map[string]uint64{}
	for _, w := range e.view().Workers {
		counts[w.Session] = w.Heartbeats
	}
	slices.Sort(others)
	want := make([]lease.SessionHeartbeat, 0, len(others))
	for _, s := range others {
		want = append(want, lease.SessionHeartbeat{Session: s, Heartbeats: counts[s]})
	}
	if !slices.Equal(o.Others, want) {
		e.Errorf("%s gets the others %v, want %v", r.Session, o.Others, want)
	}
}

// watchCases test the heartbeat counts of other sessions.
var watchCases = []testCase{
	needs(lease.WatchHeartbeats, testCase{"a heartbeat that asks gets the counts of the others", func(e *env) {
		e.start("b", "c", "a")
		e.asks(lease.Report{Session: "b"}, "a", "c")
		e.beat("c")
		e.beat("c")
		e.asks(lease.Report{Session: "b"}, "a", "c")
		e.asks(lease.Report{Session: "c"}, "a", "b")
		if o := e.beat("a"); len(o.Others) != 0 {
			e.Errorf("a heartbeat that does not ask gets %v", o.Others)
		}
	}}),
	needs(lease.WatchHeartbeats, testCase{"a first heartbeat may ask", func(e *env) {
		e.asks(lease.Report{Session: "a", First: true})
		e.asks(lease.Report{Session: "b", First: true}, "a")
		e.asks(lease.Report{Session: "b", First: true}, "a")
	}}),
	needs(lease.WatchHeartbeats, testCase{"a heartbeat that asks sees earlier heartbeats, also through another client", func(e *env) {
		e.start("a", "b")
		for range 5 {
			if _, err := e.other.Heartbeat(e.ctx, e.app, lease.Report{Session: "b"}); err != nil {
				e.Fatal(err)
			}
			e.asks(lease.Report{Session: "a"}, "b")
		}
	}}),
	needs(lease.WatchHeartbeats, testCase{"asking changes nothing else of a heartbeat", func(e *env) {
		e.start("a", "b")
		e.must(create("1"), assign("1", 1, "a"), create("2"), assign("2", 1, "a"), create("3"), assign("3", 1, "a"), create("4"), assign("4", 1, "b"))
		o := e.report(lease.Report{Session: "a", Others: true})
		e.held(o, k("1"), k("2"), k("3"))
		e.asks(lease.Report{Session: "a", Progress: []lease.Progress{at("1", 2, seq(5)), {Key: k("2"), Epoch: 2, Load: 3}}}, "b")
		e.asks(lease.Report{Session: "a", Progress: []lease.Progress{at("1", 2, seq(6)), {Key: k("2"), Epoch: 2, Release: true}}}, "b")
		o = e.report(lease.Report{Session: "a", Others: true, Progress: []lease.Progress{
			{Key: k("3"), Epoch: 2, Position: shard.End, Children: []shard.Shard{{ID: "5", Parents: []string{"3"}}}},
		}})
		e.held(o, k("1"))
		l, _ := e.find(k("1"))
		equal(e, "position", l.Position, seq(6))
	}}),
	needs(lease.WatchHeartbeats, testCase{"the leader is one of the others", func(e *env) {
		e.start("a", "b", "c")
		e.lead("a", 0)
		e.asks(lease.Report{Session: "b"}, "a", "c")
		e.asks(lease.Report{Session: "a"}, "b", "c")
		o := e.report(lease.Report{Session: "b", Others: true})
		w, _ := e.worker("a")
		equal(e, "leader", o.Leader, lease.Leader{Session: "a", Epoch: 1, Heartbeats: w.Heartbeats})
		own := e.report(lease.Report{Session: "a", Others: true}).Leader
		w, _ = e.worker("a")
		equal(e, "leader, to itself", own, lease.Leader{Session: "a", Epoch: 1, Heartbeats: w.Heartbeats})
		e.end("a")
		equal(e, "an ended leader", e.report(lease.Report{Session: "b", Others: true}).Leader, lease.Leader{Epoch: 1})
	}}),
	needs(lease.WatchHeartbeats, testCase{"sessions that have ended, left or never began are not among the others", func(e *env) {
		e.start("a", "b", "c", "d")
		e.end("b")
		e.asks(lease.Report{Session: "a"}, "c", "d")
		e.must(forget("b"))
		e.asks(lease.Report{Session: "a"}, "c", "d")
		e.leave("c")
		e.asks(lease.Report{Session: "a"}, "d")
		e.must(create("1"), assign("1", 1, "nobody"))
		e.asks(lease.Report{Session: "a"}, "d")
		e.end("a")
		e.over(lease.Report{Session: "a", Others: true})
	}}),
	needs(lease.WatchHeartbeats, testCase{"sessions of other applications are not among the others", func(e *env) {
		e.start("a", "b")
		other := e.in(e.app + "x")
		other.start("a", "c")
		part := e.in(e.app[:len(e.app)-1])
		part.start("d")
		e.asks(lease.Report{Session: "a"}, "b")
		other.asks(lease.Report{Session: "a"}, "c")
		part.asks(lease.Report{Session: "d"})
	}}),
	needs(lease.WatchHeartbeats, testCase{"there may be many others", func(e *env) {
		var all []string
		for i := range 60 {
			session := fmt.Sprintf("%s:%02d", strings.Repeat("s", 90), i)
			all = append(all, session)
			e.report(lease.Report{Session: session, Name: strings.Repeat("n", 200), First: true})
		}
		e.start("a")
		e.asks(lease.Report{Session: "a"}, all...)
		all = append(all, "a")
		e.asks(lease.Report{Session: all[7]}, slices.Delete(slices.Clone(all), 7, 8)...)
	}}),
}

// resignCases test a leader that resigns with a heartbeat.
var resignCases = []testCase{
	needs(lease.ResignByHeartbeat, testCase{"a leader resigns with a heartbeat, and the term stays", func(e *env) {
		e.start("a", "b")
		e.must(create("1"), assign("1", 1, "a"))
		e.lead("a", 0)
		o := e.report(lease.Report{Session: "a", Resigns: 1})
		equal(e, "in its own orders", o.Leader, lease.Leader{Epoch: 1})
		e.held(o, k("1"))
		equal(e, "in a view", e.view().Leader, lease.Leader{Epoch: 1})
		equal(e, "in orders of others", e.beat("b").Leader, lease.Leader{Epoch: 1})
		equal(e, "an old candidate", e.lead("b", 0), false)
		equal(e, "a candidate", e.lead("b", 1), true)
		leader := e.beat("a").Leader
		leader.Heartbeats = 0
		equal(e, "who leads then", leader, lease.Leader{Session: "b", Epoch: 2})
	}}),
	needs(lease.ResignByHeartbeat, testCase{"only the leader resigns, and of its present term", func(e *env) {
		e.start("a", "b")
		equal(e, "where no worker leads", e.report(lease.Report{Session: "a", Name: "a", Resigns: 1}).Leader, lease.Leader{})
		e.lead("a", 0)
		e.unchanged(func() {
			e.report(lease.Report{Session: "b", Name: "b", Resigns: 1})
			e.report(lease.Report{Session: "b", Name: "b", Resigns: 1, Others: true})
			for _, term := range []uint64{0, 2, 1 << 62} {
				e.report(lease.Report{Session: "a", Name: "a", Resigns: term})
			}
		})
	}}),
	needs(lease.ResignByHeartbeat, testCase{"a resignation that comes twice, or late, deposes nobody", func(e *env) {
		e.start("a", "b")
		e.lead("a", 0)
		resigns := lease.Report{Session: "a", Resigns: 1, Others: true} // the first answer was lost
		e.report(resigns)
		equal(e, "again", e.report(resigns).Leader, lease.Leader{Epoch: 1})
		e.lead("b", 1)
		e.unchanged(func() { e.report(resigns) })
		e.lead("a", 2)
		e.unchanged(func() { e.report(resigns) })
		equal(e, "of the present term", e.report(lease.Report{Session: "a", Resigns: 3}).Leader, lease.Leader{Epoch: 3})
	}}),
	needs(lease.ResignByHeartbeat, testCase{"a leader may resign with any other report", func(e *env) {
		e.start("a", "b")
		e.must(create("1"), assign("1", 1, "a"), create("2"), assign("2", 1, "a"))
		e.lead("a", 0)
		o := e.report(lease.Report{Session: "a", First: true, Others: true, Resigns: 1, Progress: []lease.Progress{
			at("1", 2, seq(5)), {Key: k("2"), Epoch: 2, Release: true},
		}})
		equal(e, "leader", o.Leader, lease.Leader{Epoch: 1})
		e.held(o, k("1"))
		l, _ := e.find(k("1"))
		equal(e, "position", l.Position, seq(5))
		equal(e, "others", len(o.Others), 1)
	}}),
	needs(lease.ResignByHeartbeat, testCase{"a session that is over resigns nothing", func(e *env) {
		e.start("a", "b")
		e.lead("a", 0)
		e.end("a")
		e.unchanged(func() { e.over(lease.Report{Session: "a", Resigns: 1}) })
		e.lead("b", 1)
		e.unchanged(func() { e.over(lease.Report{Session: "a", Resigns: 2}) })
	}}),
	needs(lease.ResignByHeartbeat, testCase{"paused streams stay when a leader resigns", func(e *env) {
		e.start("a")
		e.lead("a", 0)
		e.must(suspend("orders", true))
		e.report(lease.Report{Session: "a", Resigns: 1})
		equal(e, "paused", e.view().Paused, []string{"orders"})
	}}),
}
