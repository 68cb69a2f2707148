package protocol

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// orders contains all permutations of three sessions.
var orders = [][maxSessions]uint8{
	{0, 1, 2, 3, 4, 5}, {0, 2, 1, 3, 4, 5}, {1, 0, 2, 3, 4, 5}, {1, 2, 0, 3, 4, 5}, {2, 0, 1, 3, 4, 5}, {2, 1, 0, 3, 4, 5},
}

// least returns the same value for all states that differ only by the places of sessions and
// leases.
func (m *Model) least(s *state) string {
	var least []byte
	for _, order := range orders {
		t := *s
		m.reorder(&t, order)
		for range m.Leases {
			m.settle(&t)
			if p := m.pack(nil, &t); least == nil || bytes.Compare(p, least) < 0 {
				least = p
			}
			if m.Leases == 2 {
				m.swapLeases(&t, 0, 1)
			}
		}
	}
	return string(least)
}

func (m *Model) nexts(s *state) []string {
	found := map[string]bool{}
	m.steps(s, func(_ step, t *state) { found[m.least(t)] = true })
	return slices.Sorted(maps.Keys(found))
}

// TestPlacesMeanNothing checks that the successors of a state do not depend on the places of its
// sessions and leases. So the search needs only one of the states that differ only by places.
func TestPlacesMeanNothing(t *testing.T) {
	m := New(coarse(Model{Workers: 3, Sessions: 3, Leases: 2, OwnWatch: true, Faults: Faults{
		Crashes: unlimited, Lost: unlimited, Late: unlimited, Drift: unlimited, Handoffs: unlimited, Revokes: unlimited,
		Resigns: unlimited, Leaves: unlimited,
	}}))
	r := rand.New(rand.NewPCG(1, 2))
	checked := 0
	for range 60 {
		s := m.initial()
		for at := range 200 {
			var all []state
			m.steps(&s, func(_ step, t *state) { all = append(all, *t) })
			if len(all) == 0 {
				break
			}
			s = all[r.IntN(len(all))]
			if at%10 != 0 {
				continue
			}
			other := s
			m.reorder(&other, orders[r.IntN(len(orders))])
			if r.IntN(2) == 0 {
				m.swapLeases(&other, 0, 1)
			}
			canonical := s
			m.canonical(&canonical)
			for _, same := range []state{other, canonical} {
				if m.broken(&s) != m.broken(&same) || m.served(&s) != m.served(&same) || m.least(&s) != m.least(&same) {
					t.Fatalf("a state and the same at other places are judged differently:\n%s\n%s", m.describe(&s), m.describe(&same))
				}
				if got, want := m.nexts(&same), m.nexts(&s); !slices.Equal(got, want) {
					t.Fatalf("%d states follow, %d do from other places:\n%s\n%s", len(want), len(got), m.describe(&s), m.describe(&same))
				}
			}
			checked++
		}
	}
	t.Logf("%d states", checked)
}
