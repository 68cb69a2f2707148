package lease_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/big"
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

// seeds calls f with a generator for each of n seeds, different ones in each run. A failure names its seed.
func seeds(t *testing.T, n int, f func(t *testing.T, rng *rand.Rand)) {
	t.Helper()
	if testing.Short() {
		n /= 10
	}
	first := rand.Uint64()
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
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
	for i := range uint64(n) {
		run(first + i)
	}
}

// oneOf picks, each with the same chance.
func oneOf[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// randomModel is a small application in any state that the contract allows.
func randomModel(rng *rand.Rand) *model {
	m := newModel()
	var sessions []string
	for i := range rng.IntN(7) {
		w := &lease.Worker{Session: fmt.Sprintf("w%d", i), Beat: 10}
		sessions = append(sessions, w.Session, w.Session)
		w.Weight = oneOf[float64](rng, 0, 1, 1, 1, 2, 3)
		w.MaxLeases = oneOf(rng, 0, 0, 0, 1, 2, 5)
		w.Leaving = rng.IntN(8) == 0
		w.Drain = rng.IntN(8) == 0
		w.Ended = rng.IntN(8) == 0
		if rng.IntN(4) == 0 {
			w.Troubles = []lease.Trouble{{State: lease.CutOff}}
		}
		if rng.IntN(8) == 0 {
			m.facts.Dead[w.Session] = oneOf[uint64](rng, 9, 10, 10, 10)
		}
		if rng.IntN(8) == 0 {
			m.facts.Untold[w.Session] = true
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
			m.facts.Gone[l.Key] = true // sometimes with a lease, when it does not count
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

// TestPlanKeepsTheRulesInAnyState: whatever the rows say, each action is one that the contract allows, and the plan is the
// same in whichever order they came.
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

// checkRules holds each action against the rules that concern it alone.
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
			if m.facts.Overdue[a.Key] != a.Epoch || !m.lives(l.Owner) || l.Heir == l.Owner ||
				(!m.rests(l) && !m.takes(l.Heir)) || (m.rests(l) && l.Heir != lease.Nobody) {
				t.Errorf("%v: though it is %v", a, l)
			}
		case lease.EndSession:
			w := m.workers[a.Session]
			if beat, dead := m.facts.Dead[a.Session]; !dead || a.Beat != beat || w.Ended || w.Beat != beat {
				t.Errorf("%v: though it is %+v", a, w)
			}
		}
	}
	for k, l := range m.leases {
		if m.rests(l) && !l.Finished() && m.lives(l.Owner) && l.Heir != lease.Nobody && !touched[k] {
			t.Errorf("%v rests, and nothing is done about it", l)
		}
	}
	for s, w := range m.workers {
		_, ended := byKind[lease.EndSession][s]
		_, told := byKind[lease.Tell][s]
		_, forgotten := byKind[lease.Forget][s]
		named := false
		for _, l := range m.leases {
			named = named || !l.Finished() && (l.Owner == s || l.Heir == s || l.Revoked == s)
		}
		if want := !w.Ended && !m.lives(s); ended != want {
			t.Errorf("%s is ended: %v, want %v", s, ended, want)
		}
		if want := m.facts.Untold[s] && m.lives(s); told != want {
			t.Errorf("%s is told: %v, want %v", s, told, want)
		}
		if want := w.Ended && !named; forgotten != want {
			t.Errorf("%s is forgotten: %v, want %v", s, forgotten, want)
		}
	}
}

// free is the contract's rule about who may be given a lease at once, written down a second time.
func (m *model) free(l *lease.Lease) bool {
	isOver := func(s string) bool { return m.workers[s] == nil || m.workers[s].Ended }
	ripe, known := m.facts.Ripe[l.Key]
	return !l.Finished() && (l.Owner == "" || isOver(l.Owner)) &&
		(l.Revoked == "" || isOver(l.Revoked) || known && ripe == l.Epoch)
}

// tally is for whom the leases count, before or after a plan.
type tally struct {
	claims map[string]int // by session that takes leases: kept, or heir of
	wishes int            // of live owners that are not leaving, to an heir that takes them
	load   map[string]int // everything that a session holds or is heir of, with and without work
	idle   map[string]int // the part of it without work
	going  map[string]int // the part of it that another is heir of, with work
	kept   map[string]int // the part of it that nobody else is heir of, with work
	work   int            // leases with work
	soon   int            // of those, how many nobody can be given yet, and that count for nobody
	claim  map[lease.Key]string
}

func (m *model) tally() tally {
	c := tally{
		claims: map[string]int{}, load: map[string]int{}, idle: map[string]int{}, going: map[string]int{},
		kept: map[string]int{}, claim: map[lease.Key]string{},
	}
	for _, l := range m.leases {
		if l.Finished() {
			continue
		}
		work := !m.waits(l) && !m.rests(l)
		if work {
			c.work++
		}
		if !m.lives(l.Owner) {
			if work && !m.free(l) {
				c.soon++
			}
			ripe := m.facts.Ripe[l.Key] == l.Epoch
			if w := m.workers[l.Revoked]; w != nil && !w.Ended && !ripe && (m.workers[l.Owner] == nil || m.workers[l.Owner].Ended) {
				c.load[l.Revoked]++
				if work {
					c.going[l.Revoked]++
				} else {
					c.idle[l.Revoked]++
				}
			}
			continue
		}
		heir := ""
		if l.Heir != l.Owner && m.takes(l.Heir) && !m.rests(l) {
			if at, ok := m.facts.Overdue[l.Key]; ok && at == l.Epoch && work {
				c.load[l.Owner]++
				c.going[l.Owner]++
				c.soon++
				continue
			}
			heir = l.Heir
			c.load[heir]++
			if m.takes(l.Owner) || m.drains(l.Owner) {
				c.wishes++
			}
		}
		c.load[l.Owner]++
		switch {
		case !work:
			c.idle[l.Owner]++
			if heir != "" {
				c.idle[heir]++
			}
		case heir != "":
			c.going[l.Owner]++
			c.claims[heir]++
			c.claim[l.Key] = heir
		default:
			c.kept[l.Owner]++
			if m.takes(l.Owner) {
				c.claims[l.Owner]++
				c.claim[l.Key] = l.Owner
			}
		}
	}
	return c
}

// clone lets a plan be tried out.
func (m *model) clone() *model {
	c := newModel()
	for k, l := range m.leases {
		copied := *l
		c.leases[k] = &copied
	}
	for s, w := range m.workers {
		copied := *w
		c.workers[s] = &copied
	}
	c.facts = lease.Facts{
		Dead: maps.Clone(m.facts.Dead), Ripe: maps.Clone(m.facts.Ripe), Overdue: maps.Clone(m.facts.Overdue),
		Gone: maps.Clone(m.facts.Gone), Untold: maps.Clone(m.facts.Untold), Cooling: maps.Clone(m.facts.Cooling), Recent: maps.Clone(m.facts.Recent),
	}
	c.limits, c.paused = m.limits, m.paused
	return c
}

// checkBalance holds a whole plan against what it is for: shares, caps, and no move too many.
func checkBalance(t *testing.T, m *model, planned []lease.Action) {
	t.Helper()
	before := m.tally()
	after := m.clone()
	for _, a := range planned {
		if a.Kind != lease.EndSession && a.Kind != lease.Revoke && !after.apply(a) {
			t.Errorf("refused: %v", a)
		}
	}
	then := after.tally()

	// Nobody is given more than its cap allows, and the bound on moves holds.
	for s, w := range m.workers {
		if w.MaxLeases > 0 && then.load[s] > max(w.MaxLeases, before.load[s]) {
			t.Errorf("%s holds or will hold %d leases, its cap is %d", s, then.load[s], w.MaxLeases)
		}
	}
	limit := m.limits.MovesInFlight
	if limit == 0 {
		limit = 256
	}
	if then.wishes > max(limit, before.wishes) {
		t.Errorf("%d moves are in flight, at most %d may be", then.wishes, limit)
	}

	// Children that go to who has just finished a parent, and those that are not handed on yet, make the balance wait.
	given, kept := 0, 0
	for _, a := range planned {
		if l := m.leases[a.Key]; a.Kind == lease.Assign && m.finished(a.Session, l) {
			given++
		}
	}
	for _, l := range m.leases {
		if l.Owner != "" && len(l.Parents) > 0 && m.recent(l) {
			kept++
		}
	}

	// The leases that count for somebody else than before, against the least possible number.
	moves, back := 0, 0
	for k, s := range before.claim {
		switch then.claim[k] {
		case s:
		case m.leases[k].Owner:
			back++ // a wish that was taken back
		default:
			moves++
		}
	}
	var workers []apportioned
	capped := 0
	for _, s := range slices.Sorted(maps.Keys(m.workers)) {
		w := m.workers[s]
		if !m.takes(s) {
			continue
		}
		a := apportioned{session: s, weight: int64(2 * cmp.Or(w.Weight, 1)), cap: 1 << 20}
		if w.MaxLeases > 0 {
			a.cap = max(w.MaxLeases-before.idle[s], 0)
			a.cap = max(a.cap-before.going[s], min(a.cap, before.kept[s]))
		}
		if m.cutOff(s) {
			a.cap = min(a.cap, before.kept[s])
		}
		capped += a.cap
		workers = append(workers, a)
	}
	if len(workers) == 0 {
		return
	}
	least, reached := 1<<20, false
	for _, shares := range apportionments(workers, before.work) {
		needed, within := 0, true
		for i, w := range workers {
			needed += max(0, before.claims[w.session]-shares[i])
			within = within && then.claims[w.session] <= shares[i]
		}
		least = min(least, needed)
		reached = reached || within
	}
	if moves > least+given {
		t.Errorf("%d leases count for somebody else, %d would do", moves, least)
	}
	if given+kept > 0 {
		return
	}
	if back > 0 && slices.ContainsFunc(workers, func(w apportioned) bool { return w.cap < before.work }) {
		return // what came back made room below a cap, so the shares are others by now
	}
	if limit > before.work && capped >= before.work {
		if moves+back != least {
			t.Errorf("%d leases count for somebody else, %d would do", moves+back, least)
		}
		if !reached {
			t.Errorf("not balanced: %v of %d", then.claims, before.work)
		}
		if sum := total(then.claims); sum != before.work-before.soon {
			t.Errorf("%d of %d leases count for somebody, of which %d cannot be given out yet", sum, before.work, before.soon)
		}
	}
}

func total(m map[string]int) int {
	n := 0
	for _, c := range m {
		n += c
	}
	return n
}

type apportioned struct {
	session string
	weight  int64
	cap     int
}

// apportionments are all ways to share n leases out in proportion to weights and within caps by largest remainder, in exact
// fractions: remainders that are equal may be rounded up in any combination.
func apportionments(workers []apportioned, n int) [][]int {
	shares := make([]int, len(workers))
	open := map[int]bool{}
	weight := int64(0)
	for i, w := range workers {
		open[i] = true
		weight += w.weight
	}
	due := func(i int) *big.Rat { return big.NewRat(int64(n)*workers[i].weight, weight) }
	for again := true; again; {
		again = false
		for i := range workers {
			if open[i] && due(i).Cmp(big.NewRat(int64(workers[i].cap), 1)) >= 0 {
				// Its cap is the lesser of the two, so the others get more and this one still does not get below its cap.
				shares[i] = workers[i].cap
				n -= shares[i]
				weight -= workers[i].weight
				delete(open, i)
				again = len(open) > 0
				break
			}
		}
	}
	type remainder struct {
		worker int
		part   *big.Rat
	}
	var remainders []remainder
	left := n
	for _, i := range slices.Sorted(maps.Keys(open)) {
		d := due(i)
		whole := new(big.Int).Quo(d.Num(), d.Denom())
		shares[i] = int(whole.Int64())
		left -= shares[i]
		remainders = append(remainders, remainder{i, new(big.Rat).Sub(d, new(big.Rat).SetInt(whole))})
	}
	if len(remainders) == 0 || left == 0 {
		return [][]int{shares}
	}
	slices.SortFunc(remainders, func(a, b remainder) int { return b.part.Cmp(a.part) })
	last := remainders[left-1].part // the least that is rounded up
	var tied []int
	for _, r := range remainders {
		switch r.part.Cmp(last) {
		case 1:
			shares[r.worker]++
			left--
		case 0:
			tied = append(tied, r.worker)
		}
	}
	var all [][]int
	for set := range 1 << len(tied) {
		chosen := slices.Clone(shares)
		count := 0
		for bit, i := range tied {
			if set>>bit&1 == 1 {
				chosen[i]++
				count++
			}
		}
		if count == left {
			all = append(all, chosen)
		}
	}
	return all
}
