package storetest

import (
	"strings"

	"github.com/weir-go/weir/internal/previous"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// noteCases test what stores keep for operators: measured throughputs, and the notes of pauses.
var noteCases = []testCase{
	needs(lease.NoteRates, testCase{"a measured throughput is kept with its load", func(e *env) {
		e.start("a", "b")
		created := create("1")
		created.Lease.Rate, created.Lease.Load = lease.Measured(77)
		e.must(created)
		l := created.Lease
		e.want(l)
		e.must(assign("1", 1, "a"))
		l.Epoch, l.Owner, l.Last = 2, "a", "a"
		e.want(l)
		for _, step := range []struct {
			rate     float64
			position shard.Position
			want     shard.Position
		}{
			{40_243, seq(5), seq(5)},
			{40_244, seq(6), seq(6)}, // of the same class
			{40_245, shard.Position{}, seq(6)},
			{900, seq(4), seq(6)}, // the position is ignored, but the throughput is stored
			{lease.MaxRate, seq(7), seq(7)},
			{0, shard.Position{}, seq(7)},
			{12, seq(8), seq(8)},
		} {
			p := lease.Progress{Key: k("1"), Epoch: 2, Position: step.position}
			p.Rate, p.Load = lease.Measured(step.rate)
			e.held(e.beat("a", p), k("1"))
			l.Position, l.Rate, l.Load = step.want, p.Rate, p.Load
			e.want(l)
		}
		e.beat("a", at("1", 2, seq(9))) // a report without a load keeps both
		l.Position = seq(9)
		e.want(l)
		e.unchanged(func() {
			late := lease.Progress{Key: k("1"), Epoch: 1}
			late.Rate, late.Load = lease.Measured(500)
			e.beat("a", late)
			late.Epoch = 2
			e.beat("b", late)
		})
		given := release("1", 2)
		given.Rate, given.Load = lease.Measured(600)
		e.beat("a", given)
		l.Epoch, l.Owner, l.Rate, l.Load = 3, "", given.Rate, given.Load
		e.want(l)
		e.must(move("1", 3, seq(1)))
		l.Epoch, l.Position = 4, seq(1)
		e.want(l)
	}}),
	needs(lease.NoteRates, testCase{"several leases report throughputs and positions in one heartbeat", func(e *env) {
		e.start("a")
		e.owned("a", "1", "2", "3", "4")
		e.beat("a", at("2", 2, seq(9)))
		report := func(id string, rate float64, p shard.Position) lease.Progress {
			of := lease.Progress{Key: k(id), Epoch: 2, Position: p}
			of.Rate, of.Load = lease.Measured(rate)
			return of
		}
		// One lease has no position, the position of another does not advance, and one has no load.
		e.beat("a", report("1", 1001, shard.Position{}), report("2", 1002, seq(3)), report("3", 1003, seq(5)), at("4", 2, seq(6)))
		want := map[string]shard.Position{"1": shard.Oldest, "2": seq(9), "3": seq(5), "4": seq(6)}
		rates := map[string]uint64{"1": 1001, "2": 1002, "3": 1003}
		for _, l := range e.view().Leases {
			if l.Position != want[l.Shard] || l.Rate != rates[l.Shard] {
				e.Errorf("lease %s is at %s with %d bytes per second", l.Shard, l.Position, l.Rate)
			}
		}
	}}),
	needs(lease.NoteRates, testCase{"a load of the previous version makes the throughput approximate", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		said := at("1", 2, seq(1))
		said.Rate, said.Load = lease.Measured(40_243)
		e.beat("a", said)
		throughput := func(want float64, exact bool) {
			e.Helper()
			l := e.view().Leases[0]
			if got, is := l.Throughput(); got != want || is != exact {
				e.Errorf("the throughput is %v, exact %t, want %v, %t", got, is, want, exact)
			}
		}
		throughput(40_243, true)
		old := e.through(previous.Client(e.store))
		old.beat("a", at("1", 2, seq(2)))
		throughput(40_243, true)
		said.Position, said.Load = seq(3), lease.LoadOf(1<<20)
		old.beat("a", said)
		throughput(1<<20, false)
		said.Position = seq(4)
		said.Rate, said.Load = lease.Measured(1 << 21)
		e.beat("a", said)
		throughput(1<<21, true)
	}}),
	needs(lease.NotePauses, testCase{"the note of a pause is kept until the pause ends", func(e *env) {
		note := func(stream, text string) lease.Action {
			a := suspend(stream, true)
			a.Note = text
			return a
		}
		const ada = "1767323045006 ada@laptop"
		wants := func(what, stream, want string) {
			e.Helper()
			v := e.view()
			same := e.since(v.Revision)
			for _, v := range []lease.View{v, same} {
				equal(e, what, v.PauseNote(stream), lease.ParsePauseNote(want))
			}
		}
		wants("at first", "orders", "")
		e.must(note("orders", ada), note("", "1767323045007 é ✓ 'b\"%"), note("a.b-c_d", "0 x"), suspend("clicks", true))
		wants("one", "orders", ada)
		wants("all", "", "1767323045007 é ✓ 'b\"%")
		wants("an odd name", "a.b-c_d", "0 x")
		wants("without a note", "clicks", "")
		e.start("a", "b")
		e.owned("a", "1")
		equal(e, "leads", e.lead("a", 0), true)
		wants("after other writes", "orders", ada)
		e.must(note("orders", "1767323045008 bea"))
		wants("paused again by another", "orders", "1767323045008 bea")
		e.must(suspend("orders", true))
		wants("paused again without a note", "orders", "")
		e.must(suspend("", false))
		wants("ended", "", "")
		e.must(suspend("", true))
		wants("paused anew", "", "")
		longest := "1 " + strings.Repeat("x", lease.MaxPauseNoteBytes-2)
		e.must(note("clicks", longest))
		wants("the longest", "clicks", longest)
		e.must(suspend("clicks", false), suspend("a.b-c_d", false), suspend("orders", false), suspend("", false))
		equal(e, "none", len(e.view().Paused), 0)
	}}),
	needs(lease.NotePauses, testCase{"the note of a pause survives writes of a worker of the previous version", func(e *env) {
		old := e.through(previous.Client(e.store))
		a := suspend("orders", true)
		a.Note = "1767323045006 ada@laptop"
		e.must(a)
		old.start("a")
		old.owned("a", "1")
		equal(e, "leads", old.lead("a", 0), true)
		old.must(suspend("clicks", true))
		equal(e, "paused", old.view().Paused, []string{"clicks", "orders"})
		equal(e, "the note", e.view().PauseNote("orders"), lease.ParsePauseNote(a.Note))
		equal(e, "no note", e.view().PauseNote("clicks"), lease.PauseNote{})
	}}),
	needs(lease.NotePauses, testCase{"an invalid note of a pause is refused", func(e *env) {
		e.unchanged(func() {
			for _, note := range []string{"1 a\x00", "1 a\nb", "1 \xff", "1 " + strings.Repeat("x", lease.MaxPauseNoteBytes)} {
				a := suspend("orders", true)
				a.Note = note
				if _, err := e.store.Apply(e.ctx, e.app, []lease.Action{a}); err == nil {
					e.Errorf("the note %.20q is accepted", note)
				}
			}
		})
	}}),
	needs(lease.NoteRates, testCase{"an invalid throughput is refused", func(e *env) {
		e.start("a")
		e.owned("a", "1")
		e.unchanged(func() {
			for _, p := range []lease.Progress{
				{Key: k("1"), Epoch: 2, Load: lease.LoadOf(1000), Rate: 100_000},
				{Key: k("1"), Epoch: 2, Load: lease.MaxLoad, Rate: lease.MaxRate + 1},
			} {
				if _, err := e.store.Heartbeat(e.ctx, e.app, lease.Report{Session: "a", Progress: []lease.Progress{p}}); err == nil {
					e.Errorf("the rate %d is accepted", p.Rate)
				}
			}
		})
	}}),
}
