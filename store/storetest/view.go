package storetest

import (
	"slices"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

var viewCases = []testCase{
	{"a view has every lease and every session, ended ones too", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1", "2")
		e.must(create("3"))
		e.beat("a", at("1", 2, shard.End))
		e.end("b")
		v := e.view()
		equal(e, "leases", len(v.Leases), 3)
		var sessions []string
		for _, w := range v.Workers {
			sessions = append(sessions, w.Session)
		}
		slices.Sort(sessions)
		equal(e, "sessions", sessions, []string{"a", "b"})
	}},
	{"a view that saves the leases still shows sessions and leader as they are", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1")
		v := e.view()
		before, _ := e.worker("a")
		e.report(lease.Report{Session: "a", Name: "renamed", Leaving: true, Weight: 3, MaxLeases: 4, Holds: 5})
		e.end("b")
		e.start("c")
		e.lead("c", 0)
		v = e.since(v.Revision)
		slices.SortFunc(v.Workers, func(a, b lease.Worker) int { return lease.Key{Shard: a.Session}.Compare(lease.Key{Shard: b.Session}) })
		if len(v.Workers) != 3 || v.Workers[0].Heartbeats <= before.Heartbeats || !v.Workers[1].Ended {
			e.Fatalf("workers %+v", v.Workers)
		}
		a := v.Workers[0]
		a.Heartbeats = 0
		equal(e, "a", a, lease.Worker{Session: "a", Name: "renamed", Leaving: true, Weight: 3, MaxLeases: 4, Holds: 5})
		equal(e, "leader", v.Leader.Session, "c")
	}},
	{"a view is never the same after a change of ownership", func(e *env) {
		e.start("a", "b", "c")
		e.owned("a", "acknowledged", "released", "handed over", "finished", "moved", "revoked", "left", "revoked and left")
		e.must(create("deleted"), create("assigned"), create("moved free"), revoke("acknowledged", 2), handoff("handed over", 2, "b"))
		steps := []struct {
			name string
			do   func()
		}{
			{"create", func() { e.must(create("new")) }},
			{"delete", func() { e.must(remove("deleted", 1)) }},
			{"assign", func() { e.must(assign("assigned", 1, "b")) }},
			{"hand-off", func() { e.must(handoff("assigned", 2, "a")) }},
			{"handoff withdrawn", func() { e.must(handoff("assigned", 2, "")) }},
			{"revoke", func() { e.must(revoke("revoked", 2)) }},
			{"move", func() { e.must(move("moved", 2, seq(3))) }},
			{"move of a free lease", func() { e.must(move("moved free", 1, seq(3))) }},
			{"acknowledge", func() { e.beat("a", release("acknowledged", 2)) }},
			{"release", func() { e.beat("a", release("released", 2)) }},
			{"release to the heir", func() { e.beat("a", release("handed over", 2)) }},
			{"finish", func() { e.beat("a", at("finished", 2, shard.End)) }},
			{"finish with children", func() {
				e.beat("b", lease.Progress{Key: k("assigned"), Epoch: 2, Position: shard.End, Children: []shard.Shard{{ID: "child"}}})
			}},
			{"revoke for leave", func() { e.must(revoke("revoked and left", 2)) }},
			{"leave", func() { e.leave("a") }},
		}
		for _, step := range steps {
			known := e.view()
			again := e.since(known.Revision)
			if again.Same && again.Leases != nil {
				e.Errorf("before %s: the view is the same and has leases", step.name)
			}
			step.do()
			now := e.since(known.Revision)
			if now.Same {
				e.Errorf("after %s: the view says that it is the same", step.name)
			} else if got, want := ownership(now.Leases), ownership(e.view().Leases); got != want {
				e.Errorf("after %s:\n got %s\nwant %s", step.name, got, want)
			}
		}
	}},
	{"a view is full when the earlier one is unknown", func(e *env) {
		e.must(create("1"))
		for _, since := range []string{"nonsense", "0", "-1", "1", "99999999999999999999999", "\"'\\", e.view().Revision + "0"} {
			if v := e.since(since); v.Same || len(v.Leases) != 1 {
				if since != e.view().Revision {
					e.Errorf("since %q: same=%t with %d leases", since, v.Same, len(v.Leases))
				}
			}
		}
	}},
	{"an idle application's views may be saved", func(e *env) {
		// The contract allows a store to return the leases again although only a checkpoint has
		// changed. If the store does not set Same, the view must contain all leases.
		e.start("a")
		e.owned("a", "1")
		v := e.view()
		for range 3 {
			e.beat("a", at("1", 2, seq(5)))
			next := e.since(v.Revision)
			if !next.Same && len(next.Leases) != 1 {
				e.Fatalf("view %+v", next)
			}
			v = next
		}
	}},
}
