package storetest

import (
	"strings"

	"github.com/weir-go/weir/internal/previous"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// deathCases test the recorded deaths of owners.
var deathCases = []testCase{
	needs(lease.NoteDeaths, testCase{"recorded deaths are kept until they are replaced", func(e *env) {
		e.start("a", "b")
		created := create("1")
		created.Lease.Deaths = "1/0/0/0/oldest/"
		e.must(created)
		l := created.Lease
		e.want(l)
		e.must(assign("1", 1, "a"))
		l.Epoch, l.Owner, l.Last = 2, "a", "a"
		e.want(l)
		equal(e, "in the new owner's orders", e.beat("a").Held[0].Deaths, l.Deaths)
		e.beat("a", at("1", 2, seq(5)))
		l.Position = seq(5)
		e.want(l) // readers compare the positions

		noted := at("1", 2, seq(6))
		noted.Deaths, noted.Load = "2/1/0/2/6/", 3
		e.beat("a", noted)
		l.Position, l.Deaths, l.Load = seq(6), "2/1/0/2/6/", 3
		e.want(l)
		// This report has no position.
		e.beat("a", lease.Progress{Key: k("1"), Epoch: 2, Deaths: "3/1/1/2/6/"})
		l.Deaths = "3/1/1/2/6/"
		e.want(l)
		older := at("1", 2, seq(4))
		older.Deaths = strings.Repeat("7", lease.MaxDeathsBytes)
		e.beat("a", older) // the position is ignored, but the deaths are stored
		l.Deaths = older.Deaths
		e.want(l)
		e.unchanged(func() {
			for _, epoch := range []uint64{1, 3} {
				e.beat("a", lease.Progress{Key: k("1"), Epoch: epoch, Deaths: "late"})
			}
			e.beat("b", lease.Progress{Key: k("1"), Epoch: 2, Deaths: "another's"})
		})

		given := release("1", 2)
		given.Deaths = "4/0/0/0/6/"
		e.beat("a", given)
		l.Epoch, l.Owner, l.Deaths = 3, "", given.Deaths
		e.want(l)
		e.must(assign("1", 3, "b"))
		l.Epoch, l.Owner, l.Last = 4, "b", "b"
		e.want(l)
		e.must(revoke("1", 4))
		acknowledges := release("1", 4)
		acknowledges.Deaths = "late"
		e.beat("b", acknowledges)
		l.Epoch, l.Owner = 5, ""
		e.want(l) // an acknowledgement changes nothing else
		again := lease.Lease{Key: k("1"), Epoch: 7, Position: shard.Oldest}
		e.must(lease.Action{Kind: lease.Replace, Key: k("1"), Epoch: 5, Lease: again})
		e.want(again)
	}}),
	needs(lease.NoteDeaths, testCase{"an assignment after a death records it, under its condition", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1", "2")
		taken := func(a lease.Action, deaths string) lease.Action {
			a.Deaths = deaths
			return a
		}
		e.refused(taken(assign("1", 1, "b"), "late"))
		e.must(taken(assign("1", 2, "b"), "1/0/0/0/oldest/"), revoke("2", 2))
		l := fresh("1")
		l.Epoch, l.Owner, l.Last, l.Deaths = 3, "b", "b", "1/0/0/0/oldest/"
		e.want(l)
		l = fresh("2")
		l.Epoch, l.Revoked, l.Last = 3, "a", "a"
		e.want(l)
		e.must(taken(assign("2", 3, "b"), "2/0/0/0/oldest/"), handoff("2", 4, "a"))
		e.beat("b", release("2", 4))
		l.Epoch, l.Owner, l.Revoked, l.Last, l.Deaths = 5, "a", "", "a", "2/0/0/0/oldest/"
		e.want(l)
		e.leave("a")
		l.Epoch, l.Owner = 6, ""
		e.want(l)
	}}),
	needs(lease.NoteDeaths, testCase{"a move clears recorded deaths, also to the same position", func(e *env) {
		created := create("1")
		created.Lease.Deaths = "1/0/0/0/oldest/"
		e.must(created, move("1", 1, shard.Oldest))
		l := fresh("1")
		l.Epoch = 2
		e.want(l)
	}}),
	needs(lease.NoteDeaths, testCase{"invalid deaths are refused", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		for _, bad := range []string{strings.Repeat("7", lease.MaxDeathsBytes+1), "\n", "é"} {
			e.unchanged(func() {
				p := lease.Progress{Key: k("1"), Epoch: 2, Deaths: bad}
				if _, err := e.store.Heartbeat(e.ctx, e.app, lease.Report{Session: "a", Progress: []lease.Progress{p}}); err == nil {
					e.Errorf("a heartbeat with %.20q", bad)
				}
				a := assign("1", 2, "a")
				a.Deaths = bad
				if _, err := e.store.Apply(e.ctx, e.app, []lease.Action{a}); err == nil {
					e.Errorf("an action with %.20q", bad)
				}
			})
		}
	}}),
	needs(lease.NoteDeaths, testCase{"recorded deaths survive writes of a worker of the previous version", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1")
		e.beat("a", lease.Progress{Key: k("1"), Epoch: 2, Deaths: "1/0/0/0/oldest/"})
		before := e.through(previous.Client(e.other))
		before.beat("a", at("1", 2, seq(5)))
		before.must(handoff("1", 2, "b"))
		before.beat("a", release("1", 2))
		before.must(revoke("1", 3))
		l := fresh("1")
		l.Epoch, l.Revoked, l.Last, l.Position, l.Deaths = 4, "b", "b", seq(5), "1/0/0/0/oldest/"
		e.want(l)
	}}),
}
