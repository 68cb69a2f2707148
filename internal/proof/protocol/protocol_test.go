package protocol

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/longform"
)

var full = flag.Bool("full", false, "also the sizes that take minutes")

// size is a model that is searched completely.
type size struct {
	name string
	when when
	live bool // also check that work is possible again from every state
	Model
}

// when selects the runs in which a size is searched.
type when uint8

const (
	always when = iota
	unlessShort
	onlyLong
	onlyFull
)

// now reports whether a size is searched in this run. The sizes of the long form repeat the checks
// of smaller sizes and of TestPlantedBugsAreFound with more states.
func (w when) now() bool {
	switch w {
	case unlessShort:
		return !testing.Short()
	case onlyLong:
		return *full || longform.On()
	case onlyFull:
		return *full
	}
	return true
}

// coarse has the fewest ticks that distinguish the end of validity from death. fine has one more
// tick for each.
func coarse(m Model) Model { m.Validity, m.Failover = 0, 2; return m }
func fine(m Model) Model   { m.Validity, m.Failover = 1, 3; return m }

var sizes = []size{
	{"two workers, one lease, nothing fails", always, true, fine(Model{Workers: 2, Sessions: 3, Leases: 1})},
	{"three workers, one lease, revocations and handoffs", always, false, coarse(Model{
		Workers: 3, Sessions: 3, Leases: 1, Faults: Faults{Revokes: unlimited, Handoffs: unlimited, Drift: 1},
	})},
	{"two workers, one lease, each fault any number of times but one late write and one drift", always, false, coarse(Model{
		Workers: 2, Sessions: 2, Leases: 1,
		Faults: Faults{Crashes: unlimited, Lost: unlimited, Late: 1, Drift: 1, Revokes: unlimited, Handoffs: unlimited, Resigns: unlimited, Leaves: unlimited},
	})},
	{"two workers that each watch for themselves, one lease", always, true, coarse(Model{
		Workers: 2, Sessions: 3, Leases: 1, OwnWatch: true, Faults: Faults{Crashes: 1, Lost: 1, Late: 1},
	})},
	{"the same, on clocks with more ticks", unlessShort, false, fine(Model{
		Workers: 2, Sessions: 2, Leases: 1,
		Faults: Faults{Crashes: unlimited, Lost: unlimited, Late: 1, Drift: 1, Revokes: unlimited, Handoffs: unlimited},
	})},
	{"two workers, one lease, two late calls at a time, any number of them", unlessShort, false, coarse(Model{
		Workers: 2, Sessions: 2, Leases: 1, Faults: Faults{Lost: unlimited, Late: unlimited, Handoffs: unlimited},
	})},
	{"two workers and a restart, one lease, and whether all is read again", onlyLong, true, coarse(Model{
		Workers: 2, Sessions: 3, Leases: 1, Faults: Faults{Crashes: 1, Lost: 1, Late: 1, Drift: 1, Resigns: 1},
	})},
	{"three workers, one lease, a crash, a lost answer, a late write, a drift", onlyLong, false, coarse(Model{
		Workers: 3, Sessions: 3, Leases: 1, Faults: Faults{Crashes: 1, Lost: 1, Late: 1, Drift: 1},
	})},
	{"two workers, two leases, a crash, a lost answer, a late write, a drift", onlyLong, false, coarse(Model{
		Workers: 2, Sessions: 2, Leases: 2, Faults: Faults{Crashes: 1, Lost: 1, Late: 1, Drift: 1},
	})},
	{"two workers, two leases, revocations, handoffs and a drift", unlessShort, false, coarse(Model{
		Workers: 2, Sessions: 2, Leases: 2, Faults: Faults{Drift: 1, Revokes: 1, Handoffs: 1, Lost: 1},
	})},
	{"two workers that each watch for themselves, one lease, revocations", unlessShort, false, coarse(Model{
		Workers: 2, Sessions: 2, Leases: 1, OwnWatch: true,
		Faults: Faults{Crashes: unlimited, Lost: unlimited, Late: 1, Drift: 1, Revokes: unlimited, Handoffs: unlimited},
	})},
	{"two workers, two leases, a revocation, a crash, a lost answer, a late write, a drift", onlyFull, false, coarse(Model{
		Workers: 2, Sessions: 2, Leases: 2, Faults: Faults{Crashes: 1, Lost: 1, Late: 1, Drift: 1, Revokes: 1},
	})},
	{"two workers and restarts, one lease, each fault any number of times but one late write and one drift", onlyFull, false, coarse(Model{
		Workers: 2, Sessions: 3, Leases: 1,
		Faults: Faults{Crashes: unlimited, Lost: unlimited, Late: 1, Drift: 1, Revokes: unlimited, Handoffs: unlimited},
	})},
	{"three workers, one lease, each fault any number of times but one late write and one drift", onlyFull, false, coarse(Model{
		Workers: 3, Sessions: 3, Leases: 1,
		Faults: Faults{Crashes: unlimited, Lost: unlimited, Late: 1, Drift: 1, Revokes: unlimited},
	})},
}

func TestTheProtocolKeepsItsPromises(t *testing.T) {
	for _, s := range sizes {
		t.Run(s.name, func(t *testing.T) {
			if !s.when.now() {
				t.Skip("takes too long for this run")
			}
			began := time.Now()
			r := New(s.Model).Explore(s.live, 0)
			t.Logf("%d states, %d transitions, %d steps deep, %v", r.States, r.Transitions, r.Depth, time.Since(began).Round(10*time.Millisecond))
			if r.Broken != "" {
				t.Errorf("%s:\n%s", r.Broken, strings.Join(r.Trace, "\n"))
			}
			if r.Stuck > 0 {
				t.Errorf("%d states have no way back to work, the first:\n%s", r.Stuck, strings.Join(r.Trace, "\n"))
			}
		})
	}
}
