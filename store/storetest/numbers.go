package storetest

import (
	"strings"

	"github.com/weir-go/weir/internal/previous"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// numberCases test the numbers of handled records.
var numberCases = []testCase{
	needs(lease.NoteNumbers, testCase{"numbers are kept until they are replaced", func(e *env) {
		e.start("a", "b")
		created := create("1")
		created.Lease.Numbers = "1:oldest:"
		e.must(created)
		l := created.Lease
		e.want(l)
		e.must(assign("1", 1, "a"))
		l.Epoch, l.Owner, l.Last = 2, "a", "a"
		e.want(l)
		equal(e, "in the new owner's orders", e.beat("a").Held[0].Numbers, l.Numbers)
		e.beat("a", at("1", 2, seq(5)))
		l.Position = seq(5)
		e.want(l) // readers compare the positions

		noted := at("1", 2, seq(6))
		noted.Numbers, noted.Load = "1:6:abc", 3
		e.beat("a", noted)
		l.Position, l.Numbers, l.Load = seq(6), "1:6:abc", 3
		e.want(l)
		// This report has no position.
		e.beat("a", lease.Progress{Key: k("1"), Epoch: 2, Numbers: "1:6:def"})
		l.Numbers = "1:6:def"
		e.want(l)
		longest := at("1", 2, seq(7))
		longest.Numbers = strings.Repeat("7", lease.MaxNumbersBytes)
		e.beat("a", longest)
		l.Position, l.Numbers = seq(7), longest.Numbers
		e.want(l)
		e.unchanged(func() {
			for _, epoch := range []uint64{1, 3} {
				e.beat("a", lease.Progress{Key: k("1"), Epoch: epoch, Numbers: "late"})
			}
			e.beat("b", lease.Progress{Key: k("1"), Epoch: 2, Numbers: "another's"})
		})

		given := release("1", 2)
		given.Numbers = "1:7:ghi"
		e.beat("a", given)
		l.Epoch, l.Owner, l.Numbers = 3, "", given.Numbers
		e.want(l)
		e.must(assign("1", 3, "b"))
		l.Epoch, l.Owner, l.Last = 4, "b", "b"
		e.want(l)
		ended := at("1", 4, shard.End)
		ended.Numbers = "1:end:jkl"
		e.beat("b", ended)
		l.Epoch, l.Owner, l.Position, l.Numbers = 5, "", shard.End, ended.Numbers
		e.want(l)
		again := lease.Lease{Key: k("1"), Epoch: 7, Position: shard.Oldest}
		e.must(lease.Action{Kind: lease.Replace, Key: k("1"), Epoch: 5, Lease: again})
		e.want(again)
	}}),
	needs(lease.NoteNumbers, testCase{"a move clears numbers, also to the same position", func(e *env) {
		created := create("1")
		created.Lease.Numbers = "1:oldest:"
		e.must(created, move("1", 1, shard.Oldest))
		l := fresh("1")
		l.Epoch = 2
		e.want(l)
	}}),
	needs(lease.NoteNumbers, testCase{"invalid numbers are refused", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		for _, bad := range []string{strings.Repeat("7", lease.MaxNumbersBytes+1), "\n", "é"} {
			e.unchanged(func() {
				p := lease.Progress{Key: k("1"), Epoch: 2, Numbers: bad}
				if _, err := e.store.Heartbeat(e.ctx, e.app, lease.Report{Session: "a", Progress: []lease.Progress{p}}); err == nil {
					e.Errorf("a heartbeat with %.20q", bad)
				}
				c := create("2")
				c.Lease.Numbers = bad
				if _, err := e.store.Apply(e.ctx, e.app, []lease.Action{c}); err == nil {
					e.Errorf("an action with %.20q", bad)
				}
			})
		}
	}}),
	needs(lease.NoteNumbers, testCase{"numbers survive writes of a worker of the previous version", func(e *env) {
		e.start("a", "b")
		e.owned("a", "1")
		e.beat("a", lease.Progress{Key: k("1"), Epoch: 2, Numbers: "1:oldest:"})
		before := e.through(previous.Client(e.other))
		before.beat("a", at("1", 2, seq(5)))
		before.must(handoff("1", 2, "b"))
		before.beat("a", release("1", 2))
		before.must(revoke("1", 3))
		l := fresh("1")
		l.Epoch, l.Revoked, l.Last, l.Position, l.Numbers = 4, "b", "b", seq(5), "1:oldest:"
		e.want(l)
	}}),
}
