package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// wishCases test loads, stalls, troubles, drained workers, paused streams, heirs and births.
var wishCases = []testCase{
	{"a load is kept with its lease and changes nothing else", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1")
		l := fresh("1")
		l.Epoch, l.Owner, l.Last = 2, "a", "a"
		for _, step := range []struct {
			say      lease.Progress
			load     lease.Load
			position shard.Position
		}{
			{lease.Progress{Load: 17}, 17, shard.Oldest},
			{lease.Progress{Position: seq(5)}, 17, seq(5)},
			{lease.Progress{Position: seq(6), Load: 1}, 1, seq(6)},
			// The position is ignored, but the load is stored.
			{lease.Progress{Position: seq(4), Load: 30}, 30, seq(6)},
			{lease.Progress{Position: seq(6), Load: lease.MaxLoad}, lease.MaxLoad, seq(6)},
			{lease.Progress{}, lease.MaxLoad, seq(6)},
		} {
			step.say.Key, step.say.Epoch = k("1"), 2
			e.held(e.beat("a", step.say), k("1"))
			l.Load, l.Position = step.load, step.position
			e.want(l)
		}
		e.unchanged(func() {
			e.beat("a", lease.Progress{Key: k("1"), Epoch: 1, Load: 5}, lease.Progress{Key: k("1"), Epoch: 3, Load: 5})
			e.beat("b", lease.Progress{Key: k("1"), Epoch: 2, Load: 5})
			e.beat("a", lease.Progress{Key: k("none"), Epoch: 1, Load: 5})
		})
		e.beat("a", lease.Progress{Key: k("1"), Epoch: 2, Load: 9, Release: true})
		l.Load, l.Epoch, l.Owner = 9, 3, ""
		e.want(l)
		e.must(assign("1", 3, "b"))
		l.Epoch, l.Owner, l.Last = 4, "b", "b"
		e.want(l)
		e.must(revoke("1", 4))
		e.unchanged(func() { e.beat("b", lease.Progress{Key: k("1"), Epoch: 4, Load: 5}) })
		e.beat("b", lease.Progress{Key: k("1"), Epoch: 4, Load: 5, Release: true})
		l.Epoch, l.Owner = 5, ""
		e.want(l) // an acknowledgement changes nothing else
	}},
	{"a lease that stalled shuns the session until it is owned again", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1", "2", "3", "4")
		e.must(handoff("2", 2, "b"), handoff("3", 2, lease.Nobody))
		stalled := func(id string, epoch uint64) lease.Progress {
			return lease.Progress{Key: k(id), Epoch: epoch, Position: seq(5), Release: true, Stalled: true}
		}
		e.beat("a", stalled("1", 2), stalled("2", 2), stalled("3", 2), lease.Progress{Key: k("4"), Epoch: 2, Stalled: true})
		l := fresh("1")
		l.Epoch, l.Last, l.Shunned, l.Position = 3, "a", "a", seq(5)
		e.want(l)
		l.Key = k("3")
		e.want(l)
		l.Key, l.Owner, l.Last, l.Shunned = k("2"), "b", "b", ""
		e.want(l) // it went to its heir at once
		l = fresh("4")
		l.Epoch, l.Owner, l.Last = 2, "a", "a"
		e.want(l) // it was not released
		e.must(move("1", 3, seq(5)), assign("1", 4, "b"))
		l = fresh("1")
		l.Epoch, l.Owner, l.Last, l.Position = 5, "b", "b", seq(5)
		e.want(l)
		e.must(revoke("1", 5))
		e.beat("b", stalled("1", 5))
		l.Epoch, l.Owner = 6, ""
		e.want(l) // an acknowledgement shuns no session
		e.leave("a", stalled("4", 2))
		l = fresh("4")
		l.Epoch, l.Last, l.Shunned, l.Position = 3, "a", "a", seq(5)
		e.want(l)
	}},
	needs(lease.NoteFailures, testCase{"a trouble of a handler is kept, within bounds", func(e *env) {
		e.start("a")
		say := func(t ...lease.Trouble) {
			e.Helper()
			e.report(lease.Report{Session: "a", Troubles: t})
		}
		troubles := func() []lease.Trouble {
			w, _ := e.worker("a")
			return w.Troubles
		}
		full := lease.Failing{At: seq(3).String() + "+2", KeyHash: "ab12cd34", Records: 7, Attempts: 12, Held: lease.HeldRate, Letters: true, GivenUp: 1 << 40}
		all := []lease.Trouble{{Key: k("1"), State: "in the handler", Failing: full}, {Key: k("2"), State: lease.GaveUp, Failing: lease.Failing{GivenUp: 3}}, {Key: k("3"), State: "reading"}}
		say(all...)
		equal(e, "what was said", troubles(), all)
		full.At, full.Records, full.Attempts, full.GivenUp = strings.Repeat("9", 1000), -1, -1, -1
		say(lease.Trouble{Key: k("1"), Failing: full})
		full.At, full.Records, full.Attempts, full.GivenUp = full.At[:lease.MaxNameBytes], 0, 0, 0
		equal(e, "cut", troubles(), []lease.Trouble{{Key: k("1"), Failing: full}})
	}}),
	{"troubles are those of the last heartbeat, within bounds", func(e *env) {
		e.start("a", "b")
		troubles := func() []lease.Trouble {
			w, _ := e.worker("a")
			return w.Troubles
		}
		say := func(t ...lease.Trouble) {
			e.report(lease.Report{Session: "a", Troubles: t})
		}
		one := lease.Trouble{Key: k("1"), State: "stalled", For: 90 * time.Second, Why: "the handler says: \"no\"\n日本 \\ 'x'"}
		two := lease.Trouble{Key: k("2"), State: "throttled"}
		say(one, two)
		equal(e, "two", troubles(), []lease.Trouble{one, two})
		own := lease.Trouble{State: lease.CutOff, For: time.Minute, Why: "no route"}
		say(own, two)
		equal(e, "its own", troubles(), []lease.Trouble{own, two})
		if w, _ := e.worker("a"); !w.CutOff() {
			e.Errorf("it is not known that the worker is cut off: %+v", w)
		}
		say(two)
		equal(e, "one", troubles(), []lease.Trouble{two})
		e.beat("b")
		equal(e, "after another's heartbeat", troubles(), []lease.Trouble{two})
		say()
		equal(e, "none", troubles(), nil)
		var many []lease.Trouble
		for i := range 100 {
			many = append(many, lease.Trouble{Key: k(fmt.Sprint(i)), State: "stalled", For: time.Second + 1})
		}
		say(many...)
		if got := troubles(); len(got) != lease.MaxTroubles || got[3].Shard != "3" || got[3].For != time.Second {
			e.Errorf("of many troubles the store keeps %d: %+v", len(got), got)
		}
		one.Why, one.For = strings.Repeat("ä", 500), -1
		say(one)
		one.Why, one.For = strings.Repeat("ä", lease.MaxWhyBytes/2), 0
		equal(e, "cut", troubles(), []lease.Trouble{one})
		for i := range many {
			many[i].Why = strings.Repeat("y", 500)
		}
		say(many...)
		if got := len(troubles()); got < 5 || got >= lease.MaxTroubles {
			e.Errorf("of many long troubles the store keeps %d", got)
		}
		e.end("a")
		e.over(lease.Report{Session: "a"})
		if len(troubles()) == 0 {
			e.Error("a heartbeat of an ended session took its troubles away")
		}
	}},
	{"a worker stays drained until an operator takes that back", func(e *env) {
		e.start("a", "b", "ended")
		e.end("ended")
		e.refused(drain("nobody", true), drain("nobody", false), drain("ended", true))
		drained := func(session string) bool {
			w, _ := e.worker(session)
			return w.Drain
		}
		e.owned("a", "1")
		for range 2 {
			e.must(drain("a", true))
			e.held(e.beat("a"), k("1"))
			equal(e, "a, b", [2]bool{drained("a"), drained("b")}, [2]bool{true, false})
			e.report(lease.Report{Session: "a", First: true})
			equal(e, "after a first heartbeat that came late", drained("a"), true)
		}
		for range 2 {
			e.must(drain("a", false))
			equal(e, "a", drained("a"), false)
		}
		e.must(drain("a", true))
		e.leave("a")
		e.start("a")
		equal(e, "a new session", drained("a"), false)
	}},
	{"streams are paused until an operator resumes them", func(e *env) {
		other := e.in(e.app + "-other")
		other.start("a")
		paused := func() []string {
			v := e.view()
			same := e.since(v.Revision)
			equal(e, "in a view that may be saved", same.Paused, v.Paused)
			return v.Paused
		}
		equal(e, "at first", paused(), nil)
		for range 2 {
			e.must(suspend("orders", true))
			equal(e, "one", paused(), []string{"orders"})
		}
		e.must(suspend("", true), suspend("clicks", true), suspend("a/ b'%", true))
		equal(e, "all", paused(), []string{"", "a/ b'%", "clicks", "orders"})
		e.start("a", "b")
		e.owned("a", "1")
		equal(e, "leads", e.lead("a", 0), true)
		v := e.view()
		e.must(suspend("", false))
		equal(e, "by the way", e.since(v.Revision).Paused, []string{"a/ b'%", "clicks", "orders"})
		e.held(e.beat("a"), k("1"))
		e.leave("a")
		equal(e, "leads", e.lead("b", e.view().Leader.Epoch), true)
		for range 2 {
			e.must(suspend("orders", false), suspend("a/ b'%", false))
			equal(e, "one again", paused(), []string{"clicks"})
		}
		e.must(suspend("clicks", false))
		equal(e, "none", paused(), nil)
		equal(e, "another application", other.view().Paused, nil)
	}},
	{"the number of paused streams is limited", func(e *env) {
		var all []lease.Action
		for i := range lease.MaxPaused {
			all = append(all, suspend(fmt.Sprint("stream-", i), true))
		}
		e.must(all...)
		e.must(all[7])
		e.refused(suspend("one more", true))
		e.must(suspend("none of them", false), suspend("stream-3", false), suspend("one more", true))
		equal(e, "paused", len(e.view().Paused), lease.MaxPaused)
	}},
	{"the heir Nobody gets nothing", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1", "2", "3")
		e.must(handoff("1", 2, lease.Nobody), handoff("2", 2, lease.Nobody), handoff("3", 2, "b"), handoff("3", 2, lease.Nobody))
		o := e.beat("a")
		e.held(o, k("1"), k("2"), k("3"))
		equal(e, "heir", o.Held[0].Heir, lease.Nobody)
		e.held(e.beat("a", lease.Progress{Key: k("1"), Epoch: 2, Position: seq(5), Release: true}), k("2"), k("3"))
		l := fresh("1")
		l.Epoch, l.Last, l.Position = 3, "a", seq(5)
		e.want(l)
		e.must(handoff("2", 2, ""))
		e.leave("a")
		for _, id := range []string{"2", "3"} {
			l = fresh(id)
			l.Epoch, l.Last = 3, "a"
			e.want(l)
		}
		if done, err := e.store.Apply(e.ctx, e.app, []lease.Action{assign("1", 3, lease.Nobody)}); err == nil {
			e.Errorf("a lease was assigned to nobody: %v", done)
		}
	}},
	{"a finished lease is not given out, and no owner is asked to hand over to itself", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1", "2")
		e.beat("a", at("1", 2, shard.End))
		e.refused(assign("1", 3, "b"), handoff("2", 2, "a"))
		e.must(handoff("2", 2, "b"))
		e.refused(handoff("2", 2, "a"))
	}},
	{"leases know when their stream was born", func(e *env) {
		e.start("a")
		l := fresh("1")
		l.Born = 1767323045006
		e.must(lease.Action{Kind: lease.Create, Lease: l}, assign("1", 1, "a"))
		o := e.beat("a")
		e.held(o, k("1"))
		equal(e, "in orders", o.Held[0].Born, l.Born)
		e.must(move("1", 2, seq(5)))
		l.Epoch, l.Revoked, l.Last, l.Position = 3, "a", "a", seq(5)
		e.want(l)
		again := move("1", 3, shard.Oldest)
		again.Born = 1767323045007
		e.must(again, assign("1", 4, "a"))
		l.Epoch, l.Revoked, l.Owner, l.Position, l.Born = 5, "", "a", shard.Oldest, again.Born
		e.want(l)
		e.beat("a", lease.Progress{Key: k("1"), Epoch: 5, Position: shard.End, Children: []shard.Shard{{ID: "2", Parents: []string{"1"}, Range: upper}}})
		e.want(lease.Lease{Key: k("2"), Parents: []string{"1"}, Range: upper, Epoch: 1, Position: shard.Oldest, Born: again.Born})
	}},
}
