package lease_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// loaded returns an application whose leases have random owners and loads.
func loaded(rng *rand.Rand, capped bool) *model {
	m := newModel()
	workers := 1 + rng.IntN(8)
	for i := range workers {
		w := &lease.Worker{Session: fmt.Sprintf("w%d", i), Heartbeats: 10}
		if capped {
			w.MaxLeases = oneOf(rng, 0, 3, 10, 40)
			w.Weight = oneOf[float64](rng, 0, 1, 2, 0.5)
		}
		m.workers[w.Session] = w
	}
	for i := range rng.IntN(60) {
		l := &lease.Lease{Key: key(i), Epoch: 1, Position: shard.Oldest, Load: lease.Load(oneOf(rng, 0, 1, rng.IntN(50)))}
		l.Owner = fmt.Sprintf("w%d", rng.IntN(workers))
		l.Last = l.Owner
		m.leases[l.Key] = l
	}
	return m
}

// settle executes plans until nothing is left to do. It returns the number of changes of owner.
func (m *model) settle(t *testing.T) (moves int) {
	t.Helper()
	for range 200 {
		planned := m.plan()
		if len(planned) == 0 {
			return moves
		}
		checkRules(t, m, planned)
		for _, a := range planned {
			if !m.apply(a) {
				t.Errorf("refused: %v", a)
			}
			if a.Session != "" {
				moves++
			}
		}
		for s, n := range m.tally().load {
			if most := m.workers[s].MaxLeases; most > 0 && n > most && m.held()[s] <= most {
				t.Errorf("%s will hold %d leases, its cap is %d", s, n, most)
			}
		}
		m.handOver()
	}
	t.Error("there is no end to the moves")
	return moves
}

// weight is a second implementation of the cost of a lease.
func weight(l *lease.Lease) float64 { return 16<<10 + l.Load.Bytes() }

// TestLoadSettles checks, for any loads, that the moves that balance the load come to an end. The
// moves keep shares and caps. No session stays far above its fair load, as far as the leases allow.
func TestLoadSettles(t *testing.T) {
	t.Parallel()
	seeds(t, 300, func(t *testing.T, rng *rand.Rand) {
		capped := rng.IntN(2) == 0
		m := loaded(rng, capped)
		plain := m.clone()
		for _, l := range plain.leases {
			l.Load = 0
		}
		plain.settle(t)
		m.settle(t)
		if got, want := slices.Sorted(maps.Values(m.held())), slices.Sorted(maps.Values(plain.held())); !slices.Equal(got, want) {
			t.Errorf("shares are %v, without load they are %v", got, want)
		}
		if capped || len(m.leases) == 0 {
			return
		}
		var all, heaviest float64
		carries := map[string]float64{}
		for _, l := range m.leases {
			all += weight(l)
			heaviest = max(heaviest, weight(l))
			carries[l.Owner] += weight(l)
		}
		fair := all / float64(len(m.workers))
		for s, c := range carries {
			if c > 1.25*fair && c > fair+heaviest {
				t.Errorf("%s carries %.0f, fair is %.0f and the heaviest lease is %.0f\n%s", s, c, fair, heaviest, m)
			}
		}
	})
}

// TestLoadMovesLittle checks that no lease moves if the load is almost even.
func TestLoadMovesLittle(t *testing.T) {
	t.Parallel()
	seeds(t, 300, func(t *testing.T, rng *rand.Rand) {
		m := loaded(rng, false)
		m.settle(t)
		for _, l := range m.leases {
			l.Load = lease.Load(2 * rng.IntN(2)) // unknown, or two bytes per second
		}
		if moves := m.settle(t); moves > 0 {
			t.Errorf("%d moves though nothing comes in", moves)
		}
		even := lease.Load(rng.IntN(60))
		for _, l := range m.leases {
			l.Load = even
		}
		if moves := m.settle(t); moves > 0 && len(m.leases)%len(m.workers) == 0 {
			t.Errorf("%d moves though all bring the same", moves)
		}
	})
}

// TestNoiseMovesNothing checks loads that vary by one class. A leader may move leases because of
// such loads at first, and after a while no more.
func TestNoiseMovesNothing(t *testing.T) {
	t.Parallel()
	seeds(t, 20, func(t *testing.T, rng *rand.Rand) {
		m := loaded(rng, rng.IntN(2) == 0)
		truth := map[lease.Key]lease.Load{}
		for k, l := range m.leases {
			truth[k] = l.Load
		}
		watch := lease.NewWatch(lease.Times{Heartbeat: time.Second, Failover: time.Hour, Handoff: time.Hour}, lease.Leader{})
		now := time.Unix(1_000_000, 0)
		for round := range 100 {
			for k, l := range m.leases {
				if truth[k] > 1 {
					l.Load = truth[k] + oneOf[lease.Load](rng, 0, 0, 1, 2, 2) - 1
				}
			}
			m.facts = watch.See(m.view(nil), now, now)
			m.facts.Gone = map[lease.Key]bool{}
			planned := m.plan()
			if round > 70 && len(planned) > 0 {
				t.Errorf("round %d: %v", round, planned)
			}
			for _, a := range planned {
				m.apply(a)
			}
			m.handOver()
			now = now.Add(30 * time.Second)
		}
	})
}

// TestWatchCoolsWhatMoved checks that a lease cools for some minutes after the leader saw it change
// owner. A lease that did not change does not cool.
func TestWatchCoolsWhatMoved(t *testing.T) {
	watch := lease.NewWatch(lease.Times{Heartbeat: time.Second, Failover: time.Hour, Handoff: time.Hour}, lease.Leader{})
	now := time.Unix(1_000_000, 0)
	v := lease.View{Leases: []lease.Lease{{Key: key(1), Epoch: 4, Load: 30}, {Key: key(2), Epoch: 1, Load: 30}, {Key: key(3), Epoch: 1, Position: shard.End}}}
	see := func(after time.Duration) lease.Facts {
		now = now.Add(after)
		return watch.See(v, now, now)
	}
	if f := see(0); len(f.Cooling) != 0 || f.Loads[key(1)] != 30 || len(f.Loads) != 2 {
		t.Errorf("at first: %+v", f)
	}
	v.Leases[0].Epoch, v.Leases[0].Load = 5, 31
	if f := see(time.Second); f.Cooling[key(1)] != 5 || len(f.Cooling) != 1 || f.Loads[key(1)] != 30 {
		t.Errorf("after a move: %+v", f)
	}
	v.Leases[0].Load = 0
	v.Leases[1].Load = 40
	if f := see(time.Minute); f.Cooling[key(1)] != 5 || f.Loads[key(1)] != 30 || f.Loads[key(2)] != 39 {
		t.Errorf("a minute later: %+v", f)
	}
	v.Same = true
	v.Leases[1].Load = 30
	if f := see(2 * time.Minute); len(f.Cooling) != 0 || f.Loads[key(2)] != 39 {
		t.Errorf("three minutes later: %+v", f)
	}
	v.Same = false
	v.Leases[1].Load = 1
	if f := see(time.Second); f.Loads[key(2)] != 2 {
		t.Errorf("after the load fell: %+v", f)
	}
}

// TestWatchKnowsWhatIsRecent checks that changes of owner and finished leases count as recent for
// one heartbeat interval.
func TestWatchKnowsWhatIsRecent(t *testing.T) {
	watch := lease.NewWatch(lease.Times{Heartbeat: time.Second, Failover: time.Hour, Handoff: time.Hour}, lease.Leader{})
	now := time.Unix(1_000_000, 0)
	v := lease.View{Leases: []lease.Lease{{Key: key(1), Epoch: 4}, {Key: key(2), Epoch: 1}, {Key: key(3), Epoch: 1, Position: shard.End}}}
	see := func(after time.Duration) map[lease.Key]uint64 {
		now = now.Add(after)
		return watch.See(v, now, now).Recent
	}
	if r := see(0); len(r) != 0 {
		t.Errorf("at first: %v", r)
	}
	v.Leases[0].Epoch = 5
	v.Leases[1].Epoch, v.Leases[1].Position = 2, shard.End
	if r := see(time.Minute); r[key(1)] != 5 || r[key(2)] != 2 || len(r) != 2 {
		t.Errorf("after a move and an end: %v", r)
	}
	v.Same = true
	if r := see(time.Second - 1); len(r) != 2 {
		t.Errorf("almost a heartbeat later: %v", r)
	}
	if r := see(1); len(r) != 0 {
		t.Errorf("a beat later: %v", r)
	}
}

// TestStreamsAreSpread checks that the shards of each stream are spread over the workers. It tests
// a start, a join and a death.
func TestStreamsAreSpread(t *testing.T) {
	m := newModel()
	for i := range 4 {
		m.workers[worker(i)] = &lease.Worker{Session: worker(i), Heartbeats: 1}
	}
	for _, stream := range []string{"clicks", "orders", "views"} {
		for i := range 20 {
			k := lease.Key{Stream: stream, Shard: shardID(i)}
			m.leases[k] = &lease.Lease{Key: k, Epoch: 1, Position: shard.Oldest}
		}
	}
	spread := func(when string, most int) {
		t.Helper()
		m.settle(t)
		counts := map[[2]string]int{}
		for _, l := range m.leases {
			counts[[2]string{l.Owner, l.Stream}]++
		}
		for _, who := range slices.SortedFunc(maps.Keys(counts), func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }) {
			if counts[who] > most {
				t.Errorf("%s: %s has %d shards of %s", when, who[0], counts[who], who[1])
			}
		}
	}
	spread("at the start", 5)
	m.workers[worker(4)] = &lease.Worker{Session: worker(4), Heartbeats: 1}
	spread("after a join", 5)
	m.workers[worker(0)].Ended = true
	spread("after a death", 6)
}

// TestExplainSaysWhatPlanDoes checks that there is one sentence for each action, in the same order
// and with the same names.
func TestExplainSaysWhatPlanDoes(t *testing.T) {
	t.Parallel()
	seeds(t, 500, func(t *testing.T, rng *rand.Rand) {
		m := randomModel(rng)
		for _, l := range m.leases {
			l.Load = lease.Load(rng.IntN(50))
			if l.Owner == "" && rng.IntN(3) == 0 {
				l.Shunned = l.Last
			}
		}
		planned := m.plan()
		why := lease.Explain(m.view(rng), m.facts, m.limits)
		if len(why) != len(planned) {
			t.Fatalf("%d sentences for %v", len(why), planned)
		}
		for i, a := range planned {
			if a.Key != (lease.Key{}) && !strings.Contains(why[i], a.Key.String()) || a.Session != "" && a.Session != lease.Nobody && !strings.Contains(why[i], a.Session) {
				t.Errorf("%v: %s", a, why[i])
			}
			if strings.Contains(why[i], "it is the plan") {
				t.Errorf("%v has no reason", a)
			}
		}
	})
}

// TestWhatStalledGoesElsewhere checks that a lease returns to the session that gave it up only if
// no other session has room for it.
func TestWhatStalledGoesElsewhere(t *testing.T) {
	t.Parallel()
	seeds(t, 300, func(t *testing.T, rng *rand.Rand) {
		m := loaded(rng, true)
		for _, l := range m.leases {
			l.Load = 0 // the leader waits for coolDown before it moves the lease again because of load
		}
		m.settle(t)
		if len(m.leases) == 0 {
			return
		}
		k := oneOf(rng, m.keys()...)
		shunned := m.leases[k].Owner
		if shunned == "" {
			return
		}
		m.stall(k)
		room := false
		held := m.held()
		for s, w := range m.workers {
			as := cmp.Or(w.Weight, 1) == cmp.Or(m.workers[shunned].Weight, 1)
			room = room || s != shunned && (w.MaxLeases == 0 || held[s] < w.MaxLeases) && (held[s] > 0 || as)
		}
		m.settle(t)
		if room && m.leases[k].Last == shunned {
			t.Errorf("%v was given back to %s", m.leases[k], shunned)
		}
	})
}
