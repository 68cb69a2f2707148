package storetest

import (
	"fmt"
	"sync"

	"github.com/weir-go/weir/lease"
)

var leaderCases = []testCase{
	{"there is no leader at first", func(e *env) {
		e.start("a")
		equal(e, "in orders", e.beat("a").Leader, lease.Leader{})
		equal(e, "in a view", e.view().Leader, lease.Leader{})
		equal(e, "wrong term", e.lead("a", 1), false)
		equal(e, "leader", e.view().Leader, lease.Leader{})
	}},
	{"a candidate that names the term leads, and increases the term", func(e *env) {
		e.start("a", "b")
		equal(e, "a at 0", e.lead("a", 0), true)
		equal(e, "b at 0", e.lead("b", 0), false)
		equal(e, "a at 0 again", e.lead("a", 0), false)
		for _, leader := range []lease.Leader{e.view().Leader, e.beat("a").Leader, e.beat("b").Leader} {
			leader.Heartbeats = 0
			equal(e, "leader", leader, lease.Leader{Session: "a", Epoch: 1})
		}
		equal(e, "b at 1", e.lead("b", 1), true)
		leader := e.beat("a").Leader
		leader.Heartbeats = 0
		equal(e, "leader", leader, lease.Leader{Session: "b", Epoch: 2})
	}},
	{"a leader resigns with its term", func(e *env) {
		e.start("a", "b")
		e.lead("a", 0)
		equal(e, "stale", e.lead("", 0), false)
		equal(e, "leader", e.view().Leader.Session, "a")
		equal(e, "resigns", e.lead("", 1), true)
		equal(e, "in a view", e.view().Leader, lease.Leader{Epoch: 2})
		equal(e, "in orders", e.beat("b").Leader, lease.Leader{Epoch: 2})
		equal(e, "next", e.lead("b", 2), true)
	}},
	{"the leader's heartbeat count is that of its session", func(e *env) {
		e.start("a", "b")
		e.lead("a", 0)
		before := e.beat("b").Leader.Heartbeats
		equal(e, "without a heartbeat of the leader", e.beat("b").Leader.Heartbeats, before)
		e.beat("a")
		after := e.beat("b").Leader.Heartbeats
		if after <= before {
			e.Errorf("the leader's heartbeat count was %d and is %d", before, after)
		}
		w, _ := e.worker("a")
		equal(e, "in the view of the session", w.Heartbeats, after)
		equal(e, "in the view of the leader", e.view().Leader.Heartbeats, after)
	}},
	{"an ended leader no longer leads, and the term continues", func(e *env) {
		e.start("a", "b")
		e.lead("a", 0)
		e.end("a")
		equal(e, "in a view", e.view().Leader.Session, "")
		o := e.beat("b")
		equal(e, "in orders", o.Leader.Session, "")
		equal(e, "term", o.Leader.Epoch, 1)
		equal(e, "candidate", e.lead("b", o.Leader.Epoch), true)
		e.must(forget("a"))
		equal(e, "leader", e.view().Leader.Session, "b")
	}},
	{"a forgotten leader no longer leads", func(e *env) {
		e.start("a", "b")
		e.lead("a", 0)
		e.end("a")
		e.must(forget("a"))
		equal(e, "in orders", e.beat("b").Leader, lease.Leader{Epoch: 1})
		equal(e, "in a view", e.view().Leader, lease.Leader{Epoch: 1})
	}},
	{"of racing candidates exactly one wins each term", func(e *env) {
		const candidates, terms = 8, 10
		for i := range candidates {
			e.start(fmt.Sprint(i))
		}
		for term := range uint64(terms) {
			won := make([]bool, candidates)
			errs := make([]error, candidates)
			var wg sync.WaitGroup
			for i := range candidates {
				store := e.store
				if i%2 == 1 {
					store = e.other
				}
				wg.Go(func() { won[i], errs[i] = store.Lead(e.ctx, e.app, fmt.Sprint(i), term) })
			}
			wg.Wait()
			var winners []string
			for i := range candidates {
				if errs[i] != nil {
					e.Fatal(errs[i])
				}
				if won[i] {
					winners = append(winners, fmt.Sprint(i))
				}
			}
			leader := e.view().Leader
			if len(winners) != 1 || leader.Session != winners[0] || leader.Epoch != term+1 {
				e.Fatalf("winners %v, leader %+v", winners, leader)
			}
		}
	}},
}
