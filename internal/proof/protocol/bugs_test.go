package protocol

import (
	"strings"
	"testing"
)

// TestPlantedBugsAreFound checks the search itself: the search must find planted bugs.
func TestPlantedBugsAreFound(t *testing.T) {
	two := func(f Faults) Model { return fine(Model{Workers: 2, Sessions: 2, Leases: 1, Faults: f}) }
	with := func(m Model, b Bug) Model { m.Bug = b; return m }
	own := func(m Model) Model { m.OwnWatch = true; return m }
	for _, c := range []struct {
		name string
		Model
		want string
	}{
		{"validity is counted from when the answer arrived", with(two(Faults{Drift: 1}), ValidityFromTheAnswer), brokenRevocation},
		{"a session is ended whatever its heartbeat count is", with(two(Faults{Late: 1}), EndOfAnyCount), brokenRevocation},
		{"an observation that was carried over outlives the count", with(own(two(Faults{})), WatchOutlivesTheCount), brokenRevocation},
		{"a revoked lease is given out before anybody was told", with(two(Faults{Revokes: 1}), AssignmentOfRevoked), brokenRevocation},
		{"the wait for a revocation begins without a Tell", with(two(Faults{Revokes: 1, Lost: 1}), WaitWithoutTelling), brokenRevocation},
		{"an acknowledgement counts at any epoch", with(two(Faults{Revokes: 2, Late: 1}), AcknowledgementAtAnyEpoch), brokenRevocation},
		{"a release counts at any epoch", with(two(Faults{Late: 1}), ReleaseAtAnyEpoch), brokenRevocation},
		{"a checkpoint counts at any epoch", with(two(Faults{Revokes: 1}), CheckpointAtAnyEpoch), brokenCheckpoint},
		{"an assignment counts at any epoch", with(two(Faults{Late: 1}), AssignmentAtAnyEpoch), brokenRevocation},
		{"a heartbeat takes the leader's role from another", with(two(Faults{Resigns: 1}), ResignationOfAnybody), brokenRole},
		{"a lease is handed on while it is read", with(two(Faults{Handoffs: 1}), ReleaseWhileReading), brokenRevocation},
		{"a session is forgotten while calls that name it are under way", with(two(Faults{Lost: 1, Late: 2}), ForgetsEarly), brokenRevocation},
		{"validity lasts a tick longer", longer(two(Faults{Drift: 1})), brokenRevocation},
		{"a death takes a tick less", sooner(two(Faults{Drift: 1})), brokenRevocation},
		{"clocks differ by twice as much", two(Faults{Drift: 2}), brokenRevocation},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := New(c.Model).Explore(false, 2_000_000)
			if r.Broken != c.want {
				t.Fatalf("%d states: %q, want %q", r.States, r.Broken, c.want)
			}
			t.Logf("after %d states: %s\n%s", r.States, r.Broken, strings.Join(r.Trace, "\n"))
		})
	}
}

// TestAWedgeIsFound checks that the search finds a state from which no work is possible any more.
func TestAWedgeIsFound(t *testing.T) {
	m := fine(Model{Workers: 2, Sessions: 3, Leases: 1, Faults: Faults{Crashes: 1}})
	if r := New(m).Explore(true, 0); r.Stuck != 0 {
		t.Errorf("%d of %d states are stuck without a bug", r.Stuck, r.States)
	}
	m.Bug = NobodyTakesOver
	r := New(m).Explore(true, 0)
	if r.Stuck == 0 {
		t.Fatalf("none of %d states is stuck although nobody takes over from a dead leader", r.States)
	}
	t.Logf("%d of %d states are stuck, the first:\n%s", r.Stuck, r.States, strings.Join(r.Trace, "\n"))
}

func longer(m Model) Model { m.Validity++; return m }
func sooner(m Model) Model { m.Failover--; return m }
