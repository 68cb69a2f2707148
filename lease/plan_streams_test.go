package lease_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-go/weir/lease"
)

// streamsModel returns a random application whose workers read different streams.
func streamsModel(rng *rand.Rand) *model {
	m := randomModel(rng)
	all := []string{"a", "b", "c", "d"}
	for _, k := range m.keys() { // spread them over more streams
		l := m.leases[k]
		if l.Heir != lease.Nobody {
			l.Heir = "" // the caps only hold for handoffs that a plan requested
		}
		if len(l.Parents) == 0 && rng.IntN(2) == 0 {
			delete(m.leases, k)
			l.Stream = all[rng.IntN(4)]
			l.Shard += "x"
			m.leases[l.Key] = l
		}
	}
	some := func() lease.Streams {
		var names []string
		for _, name := range all {
			if rng.IntN(2) == 0 {
				names = append(names, name)
			}
		}
		return lease.StreamsOf(names, nil)
	}
	for _, session := range slices.Sorted(maps.Keys(m.workers)) {
		if w := m.workers[session]; rng.IntN(5) > 0 {
			w.Streams = some()
		}
	}
	if rng.IntN(2) == 0 {
		m.facts.Streams = some()
	}
	return m
}

// mayGet reports whether a plan may assign a lease of a stream to a worker.
func (m *model) mayGet(session, stream string) bool {
	w := m.workers[session]
	switch {
	case w == nil:
		return false
	case w.Streams.Known():
		return w.Streams.Has(stream)
	default:
		return !m.facts.Streams.Known() || m.facts.Streams.Has(stream)
	}
}

func TestPlanGivesNoWorkerAStreamThatItDoesNotRead(t *testing.T) {
	t.Parallel()
	seeds(t, 1_000, func(t *testing.T, rng *rand.Rand) {
		m := streamsModel(rng)
		first := m.counts()
		for round := 0; ; round++ {
			planned := m.plan()
			for _, a := range planned {
				gives := a.Kind == lease.Assign || a.Kind == lease.Handoff && a.Session != "" && a.Session != lease.Nobody
				if gives && !m.mayGet(a.Session, a.Key.Stream) {
					t.Fatalf("%s, which does not read it", a)
				}
				m.apply(a)
			}
			if len(planned) == 0 {
				break
			}
			if round == 60 {
				t.Fatalf("no end: %v", planned)
			}
			m.handOver()
			for session, n := range m.counts() {
				if w := m.workers[session]; w != nil && w.MaxLeases > 0 && n > max(w.MaxLeases, first[session]) {
					t.Fatalf("%s holds %d, and had %d at first, with a cap of %d", session, n, first[session], w.MaxLeases)
				}
			}
		}
		for _, l := range m.leases {
			if w := m.workers[l.Revoked]; w != nil && !w.Ended {
				return // the plan reserves room for it until it is acknowledged or ripe
			}
		}
		// Each lease that can be assigned has an owner if a worker that reads its stream has room.
		// No worker keeps a lease of a stream that it does not read while such a worker has room.
		waiting := lease.Waiting(m.view(nil).Leases, m.facts.Gone)
		held := m.counts()
		for _, l := range m.leases {
			_, waits := waiting[l.Key]
			if l.Finished() || waits || m.rests(l) {
				continue
			}
			if w := m.workers[l.Owner]; w != nil && !w.Ended {
				active := !w.Leaving && !w.Drain && w.Streams.Known() && !w.Streams.Has(l.Stream)
				if !active {
					continue
				}
				for session, other := range m.workers {
					full := other.MaxLeases > 0 && held[session] >= other.MaxLeases
					if !other.Ended && !other.Leaving && !other.Drain && m.mayGet(session, l.Stream) && !full && !anyCutOff(m) {
						t.Errorf("%s stays with %s, which does not read it, although %s does", l.Key, l.Owner, session)
					}
				}
				continue
			}
			for session, w := range m.workers {
				full := w.MaxLeases > 0 && held[session] >= w.MaxLeases
				if !w.Ended && !w.Leaving && !w.Drain && m.mayGet(session, l.Stream) && !full && !anyCutOff(m) {
					t.Errorf("%s is free, and %s could read it\n%s", l.Key, session, m)
				}
			}
		}
	})
}

// counts returns, for each session, the number of leases that it holds or that may still be valid
// for it.
func (m *model) counts() map[string]int {
	held := map[string]int{}
	for _, l := range m.leases {
		if at, ripe := m.facts.Ripe[l.Key]; !l.Finished() {
			held[l.Owner]++
			if !ripe || at != l.Epoch {
				held[l.Revoked]++
			}
		}
	}
	return held
}

func anyCutOff(m *model) bool {
	for _, w := range m.workers {
		if w.CutOff() {
			return true
		}
	}
	return false
}
