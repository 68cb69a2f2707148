package lease_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

var seedFlag = flag.Uint64("seed", 0, "replay the property tests of Plan with this seed alone")

// seeds calls f with n random generators, whose seeds differ in each run, and with the seeds that
// once found a fault. A failure prints its seed.
func seeds(t *testing.T, n int, f func(t *testing.T, rng *rand.Rand), found ...uint64) {
	t.Helper()
	if testing.Short() {
		n /= 10
	}
	first := rand.Uint64()
	if *seedFlag != 0 {
		first, n, found = *seedFlag, 1, nil
	}
	run := func(seed uint64) {
		defer func() {
			if t.Failed() {
				t.Fatalf("run again with -seed=%d", seed)
			}
			if p := recover(); p != nil {
				t.Fatalf("run again with -seed=%d: %v\n%s", seed, p, debug.Stack())
			}
		}()
		f(t, rand.New(rand.NewPCG(seed, 1)))
	}
	for _, seed := range found {
		run(seed)
	}
	for i := range uint64(n) {
		run(first + i)
	}
}

func oneOf[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// randomModel returns a small application in a random state that the contract allows.
func randomModel(rng *rand.Rand) *model {
	m := newModel()
	var sessions []string
	for i := range rng.IntN(7) {
		w := &lease.Worker{Session: fmt.Sprintf("w%d", i), Heartbeats: 10}
		sessions = append(sessions, w.Session, w.Session)
		w.Weight = oneOf[float64](rng, 0, 1, 1, 1, 2, 3)
		w.MaxLeases = oneOf(rng, 0, 0, 0, 1, 2, 5)
		w.Leaving = rng.IntN(8) == 0
		w.Drain = rng.IntN(8) == 0
		w.Ended = rng.IntN(8) == 0
		m.facts.Forgettable[w.Session] = rng.IntN(2) == 0
		if rng.IntN(4) == 0 {
			w.Troubles = []lease.Trouble{{State: lease.CutOff}}
		}
		if rng.IntN(8) == 0 {
			m.facts.Dead[w.Session] = oneOf[uint64](rng, 9, 10, 10, 10)
		}
		if rng.IntN(8) == 0 {
			m.facts.OutOfDate[w.Session] = true
		}
		m.workers[w.Session] = w
	}
	sessions = append(sessions, "absent")

	for i := range rng.IntN(20) {
		l := &lease.Lease{Key: key(i), Epoch: 1 + rng.Uint64N(5), Position: shard.Oldest}
		for i > 0 && len(l.Parents) < 2 && rng.IntN(4) == 0 {
			parent := key(rng.IntN(i))
			l.Parents = append(l.Parents, parent.Shard)
		}
		if rng.IntN(2) == 0 {
			l.Last = oneOf(rng, sessions...)
		}
		switch {
		case rng.IntN(5) == 0:
			l.Position = shard.End
			if rng.IntN(3) == 0 {
				l.Revoked = oneOf(rng, sessions...)
			}
		case rng.IntN(3) > 0:
			l.Owner = oneOf(rng, sessions...)
			l.Last = l.Owner
			if rng.IntN(3) == 0 {
				l.Heir = oneOf(rng, append(sessions, lease.Nobody)...)
			}
		case rng.IntN(3) == 0:
			l.Revoked = oneOf(rng, sessions...)
			l.Last = l.Revoked
		}
		if rng.IntN(10) == 0 {
			m.facts.Gone[l.Key] = true // sometimes the parent has a lease, and then this does not count
		}
		if l.Owner != "" && rng.IntN(4) == 0 {
			m.facts.Overdue[l.Key] = l.Epoch - rng.Uint64N(2)
		}
		if l.Revoked != "" && rng.IntN(2) == 0 {
			m.facts.Ripe[l.Key] = l.Epoch - rng.Uint64N(2)
		}
		if rng.IntN(3) == 0 {
			m.facts.Recent[l.Key] = l.Epoch - rng.Uint64N(2)
			m.facts.Cooling[l.Key] = m.facts.Recent[l.Key]
		}
		if rng.IntN(12) > 0 {
			m.leases[l.Key] = l
		}
	}
	m.paused = oneOf(rng, nil, nil, nil, nil, []string{"a"}, []string{""}, []string{"", "b"})
	m.limits.MovesInFlight = oneOf(rng, 0, 0, 1, 2, 5)
	return m
}

func key(i int) lease.Key {
	return lease.Key{Stream: string(rune('a' + i%2)), Shard: fmt.Sprintf("%02d", i/2)}
}

// TestPlanKeepsTheRulesInAnyState makes plans for random rows. It checks that the contract allows
// each action. It also checks that the plan does not depend on the order of the rows.
func TestPlanKeepsTheRulesInAnyState(t *testing.T) {
	t.Parallel()
	seeds(t, 2_000, func(t *testing.T, rng *rand.Rand) {
		m := randomModel(rng)
		view := m.view(nil)
		planned := lease.Plan(view, m.facts, m.limits)
		if again := lease.Plan(m.view(rng), m.facts, m.limits); !reflect.DeepEqual(planned, again) {
			t.Errorf("the order of the rows matters:\n%v\n%v", planned, again)
		}
		if !reflect.DeepEqual(view, m.view(nil)) {
			t.Error("the plan changed its input")
		}
		checkRules(t, m, planned)
		checkBalance(t, m, planned)
		if t.Failed() {
			t.Logf("%s\nplan: %v", m, planned)
		}
	})
}

// checkRules checks each action against the rules for single actions.
func checkRules(t *testing.T, m *model, planned []lease.Action) {
	t.Helper()
	byKind := map[lease.Kind]map[string]lease.Action{}
	touched := map[lease.Key]bool{}
	order := map[lease.Kind]int{lease.EndSession: 1, lease.Tell: 2, lease.Assign: 3, lease.Revoke: 4, lease.Handoff: 5, lease.Forget: 6}
	if !slices.IsSortedFunc(planned, func(a, b lease.Action) int {
		if c := order[a.Kind] - order[b.Kind]; c != 0 {
			return c
		}
		if c := a.Key.Compare(b.Key); c != 0 || a.Key != (lease.Key{}) {
			return c
		}
		return strings.Compare(a.Session, b.Session)
	}) {
		t.Errorf("not sorted: %v", planned)
	}
	for _, a := range planned {
		if byKind[a.Kind] == nil {
			byKind[a.Kind] = map[string]lease.Action{}
		}
		byKind[a.Kind][a.Session] = a
		l := m.leases[a.Key]
		switch a.Kind {
		case lease.Assign, lease.Handoff, lease.Revoke:
			if l == nil || touched[a.Key] || l.Epoch != a.Epoch {
				t.Errorf("%v: no such lease, another epoch, or twice", a)
				return
			}
			touched[a.Key] = true
			if a.Session != "" && a.Session != lease.Nobody && !m.takes(a.Session) {
				t.Errorf("%v: which is not a session that takes leases", a)
			}
			if a.Session != "" && a.Session != lease.Nobody && m.cutOff(a.Session) {
				t.Errorf("%v: which is cut off", a)
			}
		}
		switch a.Kind {
		case lease.Assign:
			if uncapped := func(s string) bool { return m.workers[s].MaxLeases == 0 }; !m.finished(a.Session, l) {
				for s := range m.workers {
					if m.finished(s, l) && uncapped(s) {
						t.Errorf("%v: though %s has just finished a parent of it", a, s)
					}
				}
			}
			if !m.free(l) || m.waits(l) || a.Session == "" || a.Session == lease.Nobody || m.rests(l) {
				t.Errorf("%v: though it is %v", a, l)
			}
		case lease.Handoff:
			if l.Owner == "" || !m.lives(l.Owner) || l.Finished() || a.Session == l.Owner || a.Session == l.Heir ||
				(a.Session == lease.Nobody) != m.rests(l) {
				t.Errorf("%v: though it is %v", a, l)
			}
			if l.Heir == "" && m.takes(l.Owner) && !m.rests(l) && m.recent(l) && len(l.Parents) > 0 {
				t.Errorf("%v: though it has hardly begun to be read: %v", a, l)
			}
		case lease.Revoke:
			if m.rests(l) && m.isOver(l.Owner) {
				continue
			}
			if m.facts.Overdue[a.Key] != a.Epoch || !m.lives(l.Owner) || l.Heir == l.Owner ||
				(!m.rests(l) && !m.takes(l.Heir)) || (m.rests(l) && l.Heir != lease.Nobody) {
				t.Errorf("%v: though it is %v", a, l)
			}
		case lease.EndSession:
			w := m.workers[a.Session]
			if beat, dead := m.facts.Dead[a.Session]; !dead || a.Heartbeats != beat || w.Ended || w.Heartbeats != beat {
				t.Errorf("%v: though it is %+v", a, w)
			}
		}
	}
	for k, l := range m.leases {
		if m.rests(l) && !l.Finished() && m.lives(l.Owner) && l.Heir != lease.Nobody && !touched[k] {
			t.Errorf("%v rests, and nothing is done about it", l)
		}
		if m.rests(l) && !l.Finished() && l.Owner != "" && m.isOver(l.Owner) && !touched[k] {
			t.Errorf("%v rests, and stays its dead owner's", l)
		}
	}
	for s, w := range m.workers {
		_, ended := byKind[lease.EndSession][s]
		_, told := byKind[lease.Tell][s]
		_, forgotten := byKind[lease.Forget][s]
		named := false
		for _, l := range m.leases {
			named = named || !l.Finished() && (l.Owner == s || l.Heir == s)
		}
		if want := !w.Ended && !m.lives(s); ended != want {
			t.Errorf("%s is ended: %v, want %v", s, ended, want)
		}
		if want := m.facts.OutOfDate[s] && m.lives(s); told != want {
			t.Errorf("%s is told: %v, want %v", s, told, want)
		}
		if want := w.Ended && !named && m.facts.Forgettable[s]; forgotten != want {
			t.Errorf("%s is forgotten: %v, want %v", s, forgotten, want)
		}
	}
}

// free is a second implementation of the rule that decides which leases may be assigned at once.
func (m *model) free(l *lease.Lease) bool {
	ripe, known := m.facts.Ripe[l.Key]
	return !l.Finished() && (l.Owner == "" || m.isOver(l.Owner)) &&
		(l.Revoked == "" || m.isOver(l.Revoked) || known && ripe == l.Epoch)
}

// isOver reports whether the rows show that a session has ended, or have no row for it.
func (m *model) isOver(session string) bool {
	return session != "" && (m.workers[session] == nil || m.workers[session].Ended)
}
