package storetest

import (
	"strings"

	"github.com/weir-go/weir/internal/previous"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// text is a field of leases whose text a store keeps, without knowing its meaning.
type text struct {
	name     string
	ability  lease.Abilities
	most     int                           // bytes
	lease    func(*lease.Lease) *string    // the field in a lease
	progress func(*lease.Progress) *string // the field in a report
}

var deaths = text{
	"deaths", lease.NoteDeaths, lease.MaxDeathsBytes,
	func(l *lease.Lease) *string { return &l.Deaths },
	func(p *lease.Progress) *string { return &p.Deaths },
}

var numbers = text{
	"numbers", lease.NoteNumbers, lease.MaxNumbersBytes,
	func(l *lease.Lease) *string { return &l.Numbers },
	func(p *lease.Progress) *string { return &p.Numbers },
}

// with returns p with a text.
func (x text) with(p lease.Progress, value string) lease.Progress {
	*x.progress(&p) = value
	return p
}

// create returns an action that creates a lease with a text.
func (x text) create(id, value string) lease.Action {
	a := create(id)
	*x.lease(&a.Lease) = value
	return a
}

// cases returns the cases that each text has.
func (x text) cases() []testCase {
	return []testCase{
		needs(x.ability, testCase{x.name + " are kept until they are replaced", x.kept}),
		needs(x.ability, testCase{x.name + " are cleared by a move, also to the same position", x.cleared}),
		needs(x.ability, testCase{"invalid " + x.name + " are refused", x.refused}),
		needs(x.ability, testCase{x.name + " survive writes of a worker of the previous version", x.survive}),
	}
}

func (x text) kept(e *env) {
	e.start("a", "b")
	created := x.create("1", "1/0/0/0/oldest/")
	e.must(created)
	l := created.Lease
	now := x.lease(&l)
	e.want(l)
	e.must(assign("1", 1, "a"))
	l.Epoch, l.Owner, l.Last = 2, "a", "a"
	e.want(l)
	equal(e, "in the new owner's orders", *x.lease(&e.beat("a").Held[0]), *now)
	e.beat("a", at("1", 2, seq(5)))
	l.Position = seq(5)
	e.want(l) // readers compare the positions

	noted := x.with(at("1", 2, seq(6)), "1:6:abc")
	noted.Load = 3
	e.beat("a", noted)
	l.Position, *now, l.Load = seq(6), "1:6:abc", 3
	e.want(l)
	// This report has no position.
	e.beat("a", x.with(lease.Progress{Key: k("1"), Epoch: 2}, "1:6:def"))
	*now = "1:6:def"
	e.want(l)
	longest := strings.Repeat("7", x.most)
	e.beat("a", x.with(at("1", 2, seq(4)), longest)) // the position is ignored, but the text is stored
	*now = longest
	e.want(l)
	e.unchanged(func() {
		for _, epoch := range []uint64{1, 3} {
			e.beat("a", x.with(lease.Progress{Key: k("1"), Epoch: epoch}, "late"))
		}
		e.beat("b", x.with(lease.Progress{Key: k("1"), Epoch: 2}, "another's"))
	})

	e.beat("a", x.with(release("1", 2), "1:7:ghi"))
	l.Epoch, l.Owner, *now = 3, "", "1:7:ghi"
	e.want(l)
	e.must(assign("1", 3, "b"))
	l.Epoch, l.Owner, l.Last = 4, "b", "b"
	e.want(l)
	e.must(revoke("1", 4))
	e.beat("b", x.with(release("1", 4), "late"))
	l.Epoch, l.Owner = 5, ""
	e.want(l) // an acknowledgement changes nothing else
	again := lease.Lease{Key: k("1"), Epoch: 7, Position: shard.Oldest}
	e.must(lease.Action{Kind: lease.Replace, Key: k("1"), Epoch: 5, Lease: again})
	e.want(again)
}

func (x text) cleared(e *env) {
	e.must(x.create("1", "1:oldest:"), move("1", 1, shard.Oldest))
	l := fresh("1")
	l.Epoch = 2
	e.want(l)
}

func (x text) refused(e *env) {
	e.start("a")
	e.owned("a", "1")
	for _, bad := range []string{strings.Repeat("7", x.most+1), "\n", "é"} {
		e.unchanged(func() {
			p := x.with(lease.Progress{Key: k("1"), Epoch: 2}, bad)
			if _, err := e.store.Heartbeat(e.ctx, e.app, lease.Report{Session: "a", Progress: []lease.Progress{p}}); err == nil {
				e.Errorf("a heartbeat with %.20q", bad)
			}
			if _, err := e.store.Apply(e.ctx, e.app, []lease.Action{x.create("2", bad)}); err == nil {
				e.Errorf("an action with %.20q", bad)
			}
		})
	}
}

func (x text) survive(e *env) {
	e.start("a", "b")
	e.owned("a", "1")
	e.beat("a", x.with(lease.Progress{Key: k("1"), Epoch: 2}, "1:oldest:"))
	before := e.through(previous.Client(e.other))
	before.beat("a", at("1", 2, seq(5)))
	before.must(handoff("1", 2, "b"))
	before.beat("a", release("1", 2))
	before.must(revoke("1", 3))
	l := fresh("1")
	l.Epoch, l.Revoked, l.Last, l.Position, *x.lease(&l) = 4, "b", "b", seq(5), "1:oldest:"
	e.want(l)
}

// assignedDeaths are cases of deaths that a leader records.
var assignedDeaths = []testCase{
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
	needs(lease.NoteDeaths, testCase{"an assignment with invalid deaths is refused", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		for _, bad := range []string{strings.Repeat("7", lease.MaxDeathsBytes+1), "\n", "é"} {
			e.unchanged(func() {
				a := assign("1", 2, "a")
				a.Deaths = bad
				if _, err := e.store.Apply(e.ctx, e.app, []lease.Action{a}); err == nil {
					e.Errorf("an action with %.20q", bad)
				}
			})
		}
	}}),
}

// endedNumbers are cases of numbers that a shard's last report contains.
var endedNumbers = []testCase{
	needs(lease.NoteNumbers, testCase{"numbers are stored with the end of a shard", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		e.beat("a", numbers.with(at("1", 2, shard.End), "1:end:jkl"))
		l := fresh("1")
		l.Epoch, l.Last, l.Position, l.Numbers = 3, "a", shard.End, "1:end:jkl"
		e.want(l)
	}}),
}
