package storetest

import (
	"errors"
	"slices"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

var actionCases = []testCase{
	{"an empty Apply does nothing", func(e *env) {
		equal(e, "results", len(e.apply()), 0)
	}},
	{"create makes the given lease", func(e *env) {
		for _, l := range []lease.Lease{
			{Key: k("1"), Epoch: 1, Position: shard.Oldest},
			{Key: k("2"), Parents: []string{"0", "1"}, Range: upper, Epoch: 1 << 40, Owner: "a", Heir: "b", Last: "a", Position: seq(5), Load: 7, Born: 1767323045006},
			{Key: k("3"), Range: shard.HashRange{End: shard.MaxHashKey}, Epoch: 7, Revoked: "c", Last: "c", Shunned: "d", Position: instant(1767323045006)},
			{Key: k("4"), Epoch: 2, Last: "a", Position: shard.End},
			{Key: k("5"), Epoch: 1, Position: shard.Latest},
		} {
			e.must(lease.Action{Kind: lease.Create, Lease: l})
			e.want(l)
		}
		e.start("a")
		e.held(e.beat("a"), k("2"))
	}},
	{"create leaves a lease that is there", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		e.refused(create("1"))
	}},
	{"assign gives a free lease", func(e *env) {
		e.start("a")
		e.must(create("1"), assign("1", 1, "a"))
		l := fresh("1")
		l.Epoch, l.Owner, l.Last = 2, "a", "a"
		e.want(l)
		e.held(e.beat("a"), k("1"))
	}},
	{"assign takes a lease from its owner and withdraws the wish", func(e *env) {
		e.start("a", "b", "c")
		e.owned("a", "1")
		e.must(handoff("1", 2, "c"), assign("1", 2, "b"))
		l := fresh("1")
		l.Epoch, l.Owner, l.Last = 3, "b", "b"
		e.want(l)
		e.held(e.beat("a"))
		e.held(e.beat("b"), k("1"))
	}},
	{"assign ends a revocation", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1")
		e.must(revoke("1", 2), assign("1", 3, "b"))
		l := fresh("1")
		l.Epoch, l.Owner, l.Last = 4, "b", "b"
		e.want(l)
	}},
	{"assign without a session changes nothing", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		e.unchanged(func() {
			// An error is also acceptable.
			if done, err := e.store.Apply(e.ctx, e.app, []lease.Action{assign("1", 2, "")}); err == nil && done[0] {
				e.Error("it reports that it took effect")
			}
		})
	}},
	{"a handoff is a wish that can be replaced and withdrawn", func(e *env) {
		e.start("a", "b", "c")
		e.owned("a", "1")
		for _, heir := range []string{"b", "b", "c", "", ""} {
			e.must(handoff("1", 2, heir))
			l := fresh("1")
			l.Epoch, l.Owner, l.Last, l.Heir = 2, "a", "a", heir
			e.want(l)
			o := e.beat("a")
			e.held(o, k("1"))
			equal(e, "heir in the orders", o.Held[0].Heir, heir)
		}
		e.held(e.beat("a", release("1", 2)))
		e.held(e.beat("b"))
		e.held(e.beat("c"))
	}},
	{"a handoff needs an owner", func(e *env) {
		e.start("a", "b")
		e.must(create("1"))
		e.refused(handoff("1", 1, "a"))
		e.owned("a", "2")
		e.must(revoke("2", 2))
		e.refused(handoff("2", 3, "b"))
	}},
	{"a revocation names the session that the lease was taken from", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1")
		e.must(handoff("1", 2, "b"), revoke("1", 2))
		l := fresh("1")
		l.Epoch, l.Revoked, l.Last = 3, "a", "a"
		e.want(l)
		e.held(e.beat("a"))
	}},
	{"a lease of a session that has ended can be revoked, and the session be forgotten", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1")
		e.must(handoff("1", 2, lease.Nobody))
		e.end("a")
		e.must(revoke("1", 2), forget("a"))
		l := fresh("1")
		l.Epoch, l.Revoked, l.Last = 3, "a", "a"
		e.want(l)
		equal(e, "workers", len(e.view().Workers), 1)
		e.unchanged(func() {
			report := lease.Report{Session: "a", Progress: []lease.Progress{at("1", 2, seq(60)), release("1", 2)}}
			if _, err := e.store.Heartbeat(e.ctx, e.app, report); !errors.Is(err, lease.ErrSessionOver) {
				e.Errorf("a heartbeat of a session that was forgotten: %v", err)
			}
		})
		e.must(assign("1", 3, "b"))
		l.Epoch, l.Owner, l.Revoked, l.Last = 4, "b", "", "b"
		e.want(l)
		e.held(e.beat("b"), k("1"))
	}},
	{"a revocation needs an owner", func(e *env) {
		e.start("a")
		e.must(create("1"))
		e.refused(revoke("1", 1))
		e.owned("a", "2")
		e.must(revoke("2", 2))
		e.refused(revoke("2", 3))
	}},
	{"delete removes leases without an owner", func(e *env) {
		e.start("a")
		e.owned("a", "owned", "revoked", "finished")
		e.must(create("free"), revoke("revoked", 2))
		e.beat("a", at("finished", 2, shard.End))
		e.refused(remove("owned", 2))
		e.must(remove("free", 1), remove("revoked", 3), remove("finished", 3))
		equal(e, "leases", len(e.view().Leases), 1)
		e.held(e.beat("a"), k("owned"))
	}},
	{"a deleted lease can be made again", func(e *env) {
		e.start("a")
		e.must(create("1"), remove("1", 1))
		e.refused(remove("1", 1), assign("1", 1, "a"))
		e.must(create("1"))
		e.want(fresh("1"))
	}},
	{"move sets the position, also backwards, and takes the lease from its owner", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1")
		e.beat("a", at("1", 2, seq(50)))
		e.must(handoff("1", 2, "b"), move("1", 2, seq(10)))
		l := fresh("1")
		l.Epoch, l.Revoked, l.Last, l.Position = 3, "a", "a", seq(10)
		e.want(l)
		e.unchanged(func() { e.held(e.beat("a", at("1", 2, seq(60)))) })
		e.must(move("1", 3, shard.Latest)) // the lease is revoked, and the revoked session stays
		l.Epoch, l.Position = 4, shard.Latest
		e.want(l)
	}},
	{"move opens and finishes leases without an owner", func(e *env) {
		e.start("a")
		e.must(create("1"), move("1", 1, shard.End))
		l := fresh("1")
		l.Epoch, l.Position = 2, shard.End
		e.want(l)
		e.must(move("1", 2, instant(1767323045006)), assign("1", 3, "a"))
		e.beat("a", at("1", 4, shard.Oldest))
		l.Epoch, l.Owner, l.Last, l.Position = 4, "a", "a", shard.Oldest
		e.want(l)
	}},
	{"replace puts another lease in the place of one without an owner", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1", "2", "3")
		e.beat("a", at("1", 2, seq(50)), at("3", 2, shard.End))
		anew := func(id string, epoch, to uint64) lease.Action {
			return lease.Action{Kind: lease.Replace, Key: k(id), Epoch: epoch, Lease: lease.Lease{
				Key: k(id), Parents: []string{"8", "9"}, Range: shard.HashRange{End: shard.MaxHashKey}, Epoch: to, Position: instant(1767323045006), Born: 7,
			}}
		}
		e.refused(anew("1", 2, 3), anew("2", 1, 3), anew("none", 0, 1), anew("none", 1, 2))
		e.must(revoke("1", 2))
		since := e.view().Revision
		e.must(anew("1", 3, 4), anew("3", 3, 1<<40))
		equal(e, "same view", e.since(since).Same, false)
		for id, epoch := range map[string]uint64{"1": 4, "3": 1 << 40} {
			e.want(anew(id, 0, epoch).Lease)
		}
		e.refused(anew("1", 3, 5)) // a late call of a former leader
		e.unchanged(func() { e.held(e.beat("a", at("1", 2, seq(60)), release("1", 2)), k("2")) })
		e.must(assign("1", 4, "b"))
		o := e.beat("b")
		e.held(o, k("1"))
		equal(e, "parents in orders", o.Held[0].Parents, []string{"8", "9"})
	}},
	{"a birth is filled in once, whoever owns the lease", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		e.must(create("2"))
		born := func(id string, epoch uint64, at int64) lease.Action {
			return lease.Action{Kind: lease.Birth, Key: k(id), Epoch: epoch, Born: at}
		}
		e.refused(born("1", 1, 7), born("none", 1, 7))
		e.beat("a", at("1", 2, seq(5)))
		since := e.view().Revision
		e.must(born("1", 2, 1767323045006), born("2", 1, 8))
		equal(e, "same view", e.since(since).Same, false)
		l := fresh("1")
		l.Epoch, l.Owner, l.Last, l.Position, l.Born = 2, "a", "a", seq(5), 1767323045006
		e.want(l)
		e.refused(born("1", 2, 9), born("2", 1, 8))
		e.held(e.beat("a", at("1", 2, seq(6))), k("1"))
		l.Position = seq(6)
		e.want(l)
		e.beat("a", lease.Progress{Key: k("1"), Epoch: 2, Position: shard.End, Children: []shard.Shard{{ID: "3", Parents: []string{"1"}, Range: upper}}})
		e.want(lease.Lease{Key: k("3"), Parents: []string{"1"}, Range: upper, Epoch: 1, Position: shard.Oldest, Born: 1767323045006})
	}},
	{"actions on leases need the epoch that is there", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1")
		e.must(create("2"))
		for _, epoch := range []uint64{0, 1, 3, 1 << 40} {
			e.refused(assign("1", epoch, "b"), handoff("1", epoch, "b"), revoke("1", epoch), move("1", epoch, seq(9)))
		}
		for _, epoch := range []uint64{0, 2} {
			e.refused(assign("2", epoch, "b"), remove("2", epoch), move("2", epoch, seq(9)))
		}
		e.refused(assign("none", 0, "b"), handoff("none", 0, "b"), revoke("none", 0), remove("none", 0), move("none", 0, seq(9)),
			assign("none", 1, "b"), remove("none", 1))
	}},
	{"ending a session needs the heartbeat count that is there and leaves its leases", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		seen, _ := e.worker("a")
		e.beat("a")
		end := lease.Action{Kind: lease.EndSession, Session: "a", Heartbeats: seen.Heartbeats}
		e.refused(end)
		e.refused(lease.Action{Kind: lease.EndSession, Session: "nobody", Heartbeats: 0})
		e.held(e.beat("a"), k("1"))
		seen, _ = e.worker("a")
		end.Heartbeats = seen.Heartbeats
		e.must(end)
		now, _ := e.worker("a")
		seen.Ended = true
		equal(e, "worker", now, seen)
		l := fresh("1")
		l.Epoch, l.Owner, l.Last = 2, "a", "a"
		e.want(l)
		e.unchanged(func() { e.must(end) }) // its first answer may have been lost
	}},
	{"the lease of an ended session is given out at once", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1")
		e.beat("a", at("1", 2, seq(5)))
		e.end("a")
		e.must(assign("1", 2, "b"))
		o := e.beat("b")
		e.held(o, k("1"))
		equal(e, "position", o.Held[0].Position, seq(5))
	}},
	{"forget removes the rows of ended sessions", func(e *env) {
		e.start("a", "b")
		e.refused(forget("a"), forget("nobody"))
		e.end("a")
		e.must(forget("a"))
		_, there := e.worker("a")
		equal(e, "row", there, false)
		e.refused(forget("a"))
		e.beat("b")
	}},
	{"tell changes nothing visible", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		e.unchanged(func() {
			e.must(lease.Action{Kind: lease.Tell, Session: "a"})
			e.apply(lease.Action{Kind: lease.Tell, Session: "nobody"})
			e.held(e.beat("a"), k("1"))
		})
	}},
	{"actions take effect in order, each under its own condition", func(e *env) {
		e.start("a", "b")
		got := e.apply(create("1"), assign("1", 1, "a"), assign("1", 1, "b"), handoff("1", 2, "b"), create("1"), revoke("1", 3), revoke("1", 2),
			assign("1", 3, "b"), remove("1", 4), create("2"), remove("2", 1), assign("2", 1, "a"), create("2"), assign("2", 1, "a"))
		want := []bool{true, true, false, true, false, false, true, true, false, true, true, false, true, true}
		if !slices.Equal(got, want) {
			e.Errorf("\n got %v\nwant %v", got, want)
		}
		l := fresh("1")
		l.Epoch, l.Owner, l.Last = 4, "b", "b"
		e.want(l)
		e.held(e.beat("a"), k("2"))
		e.held(e.beat("b"), k("1"))
	}},
	{"an unknown kind of action is an error", func(e *env) {
		e.must(create("1"))
		e.unchanged(func() {
			for _, kind := range []lease.Kind{0, lease.Birth + 1, 255} {
				if done, err := e.store.Apply(e.ctx, e.app, []lease.Action{{Kind: kind, Key: k("1"), Epoch: 1, Session: "a"}}); err == nil {
					e.Errorf("%s = %v", kind, done)
				}
			}
		})
	}},
	{"argument and result slices belong to the caller", func(e *env) {
		parents := []string{"0"}
		e.must(lease.Action{Kind: lease.Create, Lease: lease.Lease{Key: k("1"), Parents: parents, Epoch: 1, Position: shard.Oldest}})
		parents[0] = "changed"
		e.start("a")
		e.must(assign("1", 1, "a"))
		e.view().Leases[0].Parents[0] = "changed"
		e.beat("a").Held[0].Parents[0] = "changed"
		l, _ := e.find(k("1"))
		equal(e, "parents", l.Parents, []string{"0"})

		children := []shard.Shard{{ID: "2", Parents: []string{"1"}}}
		e.beat("a", lease.Progress{Key: k("1"), Epoch: 2, Position: shard.End, Children: children})
		children[0].Parents[0] = "changed"
		l, _ = e.find(k("2"))
		equal(e, "parents of the child", l.Parents, []string{"1"})
	}},
}

var leaveCases = []testCase{
	{"leaving saves progress, frees all leases, and removes the row", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1", "2", "3")
		e.owned("b", "4")
		e.must(handoff("2", 2, "b"))
		e.leave("a", at("1", 2, seq(5)), lease.Progress{Key: k("2"), Epoch: 2, Position: seq(6)},
			lease.Progress{Key: k("3"), Epoch: 2, Position: seq(7), Release: true}, at("4", 2, seq(9)))
		for id, want := range map[string]lease.Lease{
			"1": {Epoch: 3, Last: "a", Position: seq(5)},
			"2": {Epoch: 3, Owner: "b", Last: "b", Position: seq(6)},
			"3": {Epoch: 3, Last: "a", Position: seq(7)},
			"4": {Epoch: 2, Owner: "b", Last: "b", Position: shard.Oldest},
		} {
			want.Key, want.Range = k(id), upper
			e.want(want)
		}
		_, there := e.worker("a")
		equal(e, "row", there, false)
		e.held(e.beat("b"), k("2"), k("4"))
		e.over(lease.Report{Session: "a"})
	}},
	{"leaving acknowledges revocations", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1")
		e.owned("b", "2")
		e.must(revoke("1", 2), revoke("2", 2))
		e.leave("a", at("1", 2, seq(9)))
		l := fresh("1")
		l.Epoch, l.Last = 3, "a"
		e.want(l)
		l = fresh("2")
		l.Epoch, l.Last, l.Revoked = 3, "b", "b"
		e.want(l)
	}},
	{"leaving gives leadership up", func(e *env) {
		e.start("a", "b")
		if !e.lead("a", 0) {
			e.Fatal("a does not lead")
		}
		e.leave("b")
		equal(e, "leader", e.view().Leader.Session, "a")
		e.start("b")
		e.leave("a")
		leader := e.view().Leader
		equal(e, "leader", leader, lease.Leader{Epoch: 2}) // as if the leader had resigned
		equal(e, "stale candidate", e.lead("b", 1), false)
		equal(e, "candidate", e.lead("b", 2), true)
		equal(e, "leader", e.beat("b").Leader.Session, "b")
	}},
	{"leaving may be repeated", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1", "2")
		e.must(handoff("2", 2, "b"))
		e.lead("a", 0)
		r := []lease.Progress{at("1", 2, seq(5)), {Key: k("2"), Epoch: 2, Position: seq(6), Release: true}}
		e.leave("a", r...)
		e.unchanged(func() { e.leave("a", r...) })
		e.must(assign("1", 3, "b"))
		e.lead("b", e.view().Leader.Epoch)
		e.unchanged(func() { e.leave("a", r...) })
	}},
	{"an unknown session may leave", func(e *env) {
		e.must(create("1"))
		e.unchanged(func() { e.leave("a", at("1", 1, seq(5))) })
	}},
	{"an ended session leaves without its progress", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1", "2", "3")
		e.must(revoke("2", 2), handoff("3", 2, "b"))
		e.end("a")
		e.leave("a", at("1", 2, seq(5)), at("3", 2, shard.End))
		l := fresh("1")
		l.Epoch, l.Last = 3, "a"
		e.want(l)
		l = fresh("2")
		l.Epoch, l.Last = 3, "a"
		e.want(l)
		l = fresh("3")
		l.Epoch, l.Owner, l.Last = 3, "b", "b"
		e.want(l)
		_, there := e.worker("a")
		equal(e, "row", there, false)
	}},
	{"a forgotten session that leaves frees leases that still name it", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		e.end("a")
		e.must(forget("a"))
		e.leave("a", at("1", 2, seq(5)))
		l := fresh("1")
		l.Epoch, l.Last = 3, "a"
		e.want(l)
	}},
}
