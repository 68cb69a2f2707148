package storetest

import (
	"strings"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// owned creates a lease for each ID and gives it to session at epoch 2.
func (e *env) owned(session string, ids ...string) {
	e.Helper()
	for _, id := range ids {
		e.must(create(id), assign(id, 1, session))
	}
}

var progressCases = []testCase{
	{"progress of the owner at the current epoch moves the checkpoint and nothing else", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		e.held(e.beat("a", at("1", 2, seq(5))), k("1"))
		l := fresh("1")
		l.Epoch, l.Owner, l.Last, l.Position = 2, "a", "a", seq(5)
		e.want(l)
	}},
	{"progress at another epoch is ignored", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		e.beat("a", at("1", 2, seq(5)))
		e.unchanged(func() {
			for _, epoch := range []uint64{0, 1, 3, 1 << 40} {
				e.held(e.beat("a", lease.Progress{Key: k("1"), Epoch: epoch, Position: seq(9), Release: true}), k("1"))
				e.held(e.beat("a", at("1", epoch, shard.End)), k("1"))
			}
		})
	}},
	{"progress of another session is ignored", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1")
		e.unchanged(func() {
			e.held(e.beat("b", lease.Progress{Key: k("1"), Epoch: 2, Position: seq(9), Release: true}))
			e.held(e.beat("b", at("1", 2, shard.End)))
		})
	}},
	{"progress of a free lease is ignored", func(e *env) {
		e.start("a")
		e.must(create("1"))
		e.unchanged(func() { e.beat("a", lease.Progress{Key: k("1"), Epoch: 1, Position: seq(9), Release: true}) })
	}},
	{"progress of an unknown lease is ignored", func(e *env) {
		e.start("a")
		e.unchanged(func() {
			e.beat("a", at("1", 0, seq(9)), at("1", 1, seq(9)), release("1", 1))
		})
	}},
	{"each progress of a report counts by itself", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1", "2", "3")
		e.owned("b", "4")
		o := e.beat("a", at("1", 1, seq(9)), at("2", 2, seq(6)), at("4", 2, seq(9)), at("none", 1, seq(9)),
			lease.Progress{Key: k("3"), Epoch: 2, Position: seq(7), Release: true})
		e.held(o, k("1"), k("2"))
		for id, want := range map[string]shard.Position{"1": shard.Oldest, "2": seq(6), "3": seq(7), "4": shard.Oldest} {
			l, _ := e.find(k(id))
			equal(e, "position of "+id, l.Position, want)
		}
	}},
	{"checkpoints never go back", func(e *env) {
		// The positions are in increasing order. The case reports each position after each other
		// position.
		var inOrder []shard.Position
		for _, s := range []string{"1969-12-31T23:59:59.999Z", "2026-01-02T03:04:05.006Z", "2026-01-02T03:04:05.007Z", "oldest", "latest",
			"0+0", "0", "9+1", "9+2", "9+10", "9", "10+0", "10", "99999999999999999999", "100000000000000000000+4294967294",
			"100000000000000000000", "1" + strings.Repeat("0", 128), strings.Repeat("9", 129) + "+4294967294", strings.Repeat("9", 129)} {
			inOrder = append(inOrder, parse(e, s))
		}
		e.start("a")
		for i, p := range inOrder {
			l := fresh("x")
			l.Shard, l.Position, l.Owner, l.Last = "at "+p.String(), p, "a", "a"
			e.must(lease.Action{Kind: lease.Create, Lease: l})
			report := func(to shard.Position) shard.Position {
				e.beat("a", lease.Progress{Key: l.Key, Epoch: 1, Position: to})
				got, _ := e.find(l.Key)
				return got.Position
			}
			equal(e, "no position at "+p.String(), report(shard.Position{}), p)
			for _, back := range inOrder[:i+1] {
				equal(e, "from "+p.String()+" to "+back.String(), report(back), p)
			}
			if i+1 < len(inOrder) {
				next := inOrder[i+1]
				equal(e, "from "+p.String()+" to "+next.String(), report(next), next)
				equal(e, "from "+next.String()+" back to "+p.String(), report(p), next)
			}
		}
	}},
	{"a position before the stored one does not hinder a release", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		e.beat("a", at("1", 2, seq(50)))
		e.held(e.beat("a", lease.Progress{Key: k("1"), Epoch: 2, Position: seq(40), Release: true}))
		l := fresh("1")
		l.Epoch, l.Last, l.Position = 3, "a", seq(50)
		e.want(l)
	}},
	{"a release without an heir frees the lease and fences its owner", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		e.held(e.beat("a", release("1", 2)))
		l := fresh("1")
		l.Epoch, l.Last = 3, "a"
		e.want(l)
		e.unchanged(func() {
			e.held(e.beat("a", at("1", 2, seq(9))))
			e.held(e.beat("a", at("1", 3, seq(9))))
			e.held(e.beat("a", release("1", 2)))
		})
	}},
	{"progress, release and heir meet in one report", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1")
		e.must(handoff("1", 2, "b"))
		e.held(e.beat("b"))
		o := e.beat("a")
		e.held(o, k("1"))
		equal(e, "heir", o.Held[0].Heir, "b")
		e.held(e.beat("a", lease.Progress{Key: k("1"), Epoch: 2, Position: seq(5), Release: true}))
		l := fresh("1")
		l.Epoch, l.Owner, l.Last, l.Position = 3, "b", "b", seq(5)
		e.want(l)
		o = e.beat("b")
		e.held(o, k("1"))
		equal(e, "what the heir got", describe(o.Held[0]), describe(l))
		e.unchanged(func() { e.beat("a", lease.Progress{Key: k("1"), Epoch: 2, Position: seq(9), Release: true}) })
	}},
	{"progress without a release leaves the wish", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1")
		e.must(handoff("1", 2, "b"))
		o := e.beat("a", at("1", 2, seq(5)))
		e.held(o, k("1"))
		equal(e, "heir", o.Held[0].Heir, "b")
	}},
	{"a revoked lease takes no progress of its old owner until that acknowledges", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1")
		e.beat("a", at("1", 2, seq(5)))
		e.must(handoff("1", 2, "b"), revoke("1", 2))
		l := fresh("1")
		l.Epoch, l.Revoked, l.Last, l.Position = 3, "a", "a", seq(5)
		e.want(l)
		e.unchanged(func() {
			e.held(e.beat("a", at("1", 2, seq(9))))
			e.held(e.beat("a", at("1", 3, seq(9))))
			e.beat("a", at("1", 2, shard.End))
			e.beat("b", release("1", 2), release("1", 3)) // b must not acknowledge it
		})
		e.held(e.beat("a", lease.Progress{Key: k("1"), Epoch: 2, Position: seq(9), Release: true}))
		l.Revoked = ""
		e.want(l) // the epoch does not change, because the lease had no owner
		e.unchanged(func() { e.beat("a", release("1", 2)) })
	}},
	{"the late duplicate of an acknowledgement does not acknowledge a later revocation", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		e.must(revoke("1", 2))
		e.beat("a", release("1", 2))
		e.must(assign("1", 3, "a"), revoke("1", 4))
		e.unchanged(func() { e.beat("a", release("1", 2)) })
		e.beat("a", release("1", 4))
		l, _ := e.find(k("1"))
		equal(e, "revoked from", l.Revoked, "")
	}},
	{"an acknowledgement after the lease was given out changes nothing", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1")
		e.must(revoke("1", 2), assign("1", 3, "b"))
		e.unchanged(func() { e.beat("a", lease.Progress{Key: k("1"), Epoch: 2, Position: seq(9), Release: true}) })
		e.held(e.beat("b"), k("1"))
	}},
	{"an owner that gets its lease back at a later epoch reports at that one only", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		e.must(revoke("1", 2), assign("1", 3, "a"))
		e.unchanged(func() {
			e.held(e.beat("a", lease.Progress{Key: k("1"), Epoch: 2, Position: seq(9), Release: true}), k("1"))
		})
		e.beat("a", at("1", 4, seq(9)))
		l, _ := e.find(k("1"))
		equal(e, "position", l.Position, seq(9))
	}},
}

var endCases = []testCase{
	{"the end of a shard finishes the lease, makes its children, and fences its owner", func(e *env) {
		for _, rel := range []bool{false, true} {
			e := e.in(e.app + map[bool]string{false: "-kept", true: "-released"}[rel])
			e.start("a", "b")
			e.owned("a", "1")
			e.must(handoff("1", 2, "b"))
			lower := shard.HashRange{End: shard.HashKey{Hi: 1<<63 - 1, Lo: 1<<64 - 1}}
			o := e.beat("a", lease.Progress{Key: k("1"), Epoch: 2, Position: shard.End, Release: rel, Children: []shard.Shard{
				{ID: "2", Parents: []string{"1"}, Range: lower}, {ID: "3", Parents: []string{"1"}, Range: upper}}})
			e.held(o)
			l := fresh("1")
			l.Epoch, l.Last, l.Position = 3, "a", shard.End
			e.want(l)
			e.want(lease.Lease{Key: k("2"), Parents: []string{"1"}, Range: lower, Epoch: 1, Position: shard.Oldest})
			e.want(lease.Lease{Key: k("3"), Parents: []string{"1"}, Range: upper, Epoch: 1, Position: shard.Oldest})
			equal(e, "leases", len(e.view().Leases), 3)
			e.unchanged(func() { e.beat("a", at("1", 2, seq(9)), at("1", 3, seq(9)), release("1", 2)) })
		}
	}},
	{"an end that is reported twice makes children once", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		end := lease.Progress{Key: k("1"), Epoch: 2, Position: shard.End, Children: []shard.Shard{{ID: "2", Parents: []string{"1"}, Range: upper}}}
		e.beat("a", end)
		e.must(assign("2", 1, "a"))
		e.beat("a", lease.Progress{Key: k("2"), Epoch: 2, Position: seq(5)})
		e.unchanged(func() { e.held(e.beat("a", end), k("2")) })
	}},
	{"both parents of a merge report the same child, which is made once", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1")
		e.owned("b", "2")
		child := []shard.Shard{{ID: "3", Parents: []string{"1", "2"}, Range: upper}}
		e.beat("a", lease.Progress{Key: k("1"), Epoch: 2, Position: shard.End, Children: child})
		want := lease.Lease{Key: k("3"), Parents: []string{"1", "2"}, Range: upper, Epoch: 1, Position: shard.Oldest}
		e.want(want)
		e.must(assign("3", 1, "a"))
		e.beat("b", lease.Progress{Key: k("2"), Epoch: 2, Position: shard.End, Children: child})
		want.Epoch, want.Owner, want.Last = 2, "a", "a"
		e.want(want)
		for _, id := range []string{"1", "2"} {
			if l, _ := e.find(k(id)); !l.Finished() || l.Owner != "" || l.Epoch != 3 {
				e.Errorf("parent %s", l)
			}
		}
	}},
	{"one report may end both parents of a merge", func(e *env) {
		e.start("a")
		e.owned("a", "1", "2")
		child := []shard.Shard{{ID: "3", Parents: []string{"1", "2"}, Range: upper}}
		e.held(e.beat("a", lease.Progress{Key: k("1"), Epoch: 2, Position: shard.End, Children: child},
			lease.Progress{Key: k("2"), Epoch: 2, Position: shard.End, Children: child}))
		e.want(lease.Lease{Key: k("3"), Parents: []string{"1", "2"}, Range: upper, Epoch: 1, Position: shard.Oldest})
	}},
	{"a child's stream is its parent's", func(e *env) {
		e.start("a")
		other := lease.Key{Stream: "clicks", Shard: "1"}
		e.must(lease.Action{Kind: lease.Create, Lease: lease.Lease{Key: other, Epoch: 1, Owner: "a", Last: "a", Position: shard.Oldest}}, create("2"))
		e.beat("a", lease.Progress{Key: other, Epoch: 1, Position: shard.End, Children: []shard.Shard{{ID: "2"}}})
		e.want(fresh("2"))
		e.want(lease.Lease{Key: lease.Key{Stream: "clicks", Shard: "2"}, Epoch: 1, Position: shard.Oldest})
	}},
	{"children come with the end only", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		children := []shard.Shard{{ID: "2", Parents: []string{"1"}}}
		e.beat("a", lease.Progress{Key: k("1"), Epoch: 2, Position: seq(5), Children: children})
		e.beat("a", lease.Progress{Key: k("1"), Epoch: 2, Release: true, Children: children})
		equal(e, "leases", len(e.view().Leases), 1)
	}},
	{"an end without children is an end", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		e.held(e.beat("a", at("1", 2, shard.End)))
		if l, _ := e.find(k("1")); !l.Finished() || l.Epoch != 3 {
			e.Errorf("lease %s", l)
		}
	}},
	{"a lease may be finished when its session leaves", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		e.leave("a", lease.Progress{Key: k("1"), Epoch: 2, Position: shard.End, Children: []shard.Shard{{ID: "2", Parents: []string{"1"}, Range: upper}}})
		l := fresh("1")
		l.Epoch, l.Last, l.Position = 3, "a", shard.End
		e.want(l)
		e.want(lease.Lease{Key: k("2"), Parents: []string{"1"}, Range: upper, Epoch: 1, Position: shard.Oldest})
	}},
}

func parse(e *env, s string) shard.Position {
	e.Helper()
	p, err := shard.Parse(s)
	if err != nil {
		e.Fatal(err)
	}
	return p
}

// instant returns the position at a time.
func instant(ms int64) shard.Position { return shard.At(time.UnixMilli(ms)) }
