package lease_test

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"testing"

	"github.com/weir-go/weir/lease"
)

// tally contains the numbers of leases that count for each session, before or after a plan.
type tally struct {
	claims map[string]int // by session that takes leases: kept leases, and leases of which it is heir
	// wishes counts handoffs whose heir takes leases and whose owner is alive and not leaving.
	wishes int
	// idling counts wishes for leases without work, which also count against the limit.
	idling int
	load   map[string]int // all leases of which a session is owner or heir, with and without work
	idle   map[string]int // the part of load without work
	going  map[string]int // the part of load with work that another session is heir of
	kept   map[string]int // the part of load with work that no other session is heir of
	work   int            // leases with work
	soon   int            // leases with work that cannot be assigned yet and count for no session
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
				if !work {
					c.idling++
				}
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

// clone returns a copy of the model, to try a plan on.
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
		Gone: maps.Clone(m.facts.Gone), OutOfDate: maps.Clone(m.facts.OutOfDate), Forgettable: maps.Clone(m.facts.Forgettable), Cooling: maps.Clone(m.facts.Cooling), Recent: maps.Clone(m.facts.Recent),
	}
	c.limits, c.paused = m.limits, m.paused
	return c
}

// checkBalance checks the shares and caps of a whole plan, and that it has no unnecessary move.
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

	// No session gets more leases than its cap, and the limit on moves is kept.
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

	// A child may go to the session that has finished its parent, even above the share of that
	// session. A child that was just assigned is not handed on yet. Both cases delay the balance.
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

	// moves and back together are the number of leases that no longer count for the same session
	// after the plan. This number must be the minimum.
	moves, back := 0, 0
	for k, s := range before.claim {
		switch then.claim[k] {
		case s:
		case m.leases[k].Owner:
			back++ // a withdrawn handoff
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
		t.Errorf("%d leases count for another session, the minimum is %d", moves, least)
	}
	if given+kept > 0 {
		return
	}
	if back > 0 && slices.ContainsFunc(workers, func(w apportioned) bool { return w.cap < before.work }) {
		return // withdrawn handoffs made room below a cap, so the shares have changed
	}
	if limit-before.idling > before.work && capped >= before.work {
		if moves+back != least {
			t.Errorf("%d leases count for another session, the minimum is %d", moves+back, least)
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

// apportionments returns all ways to distribute n leases by largest remainder, in proportion to
// weights and within caps. It computes exact fractions. Equal remainders may be rounded up in any
// combination.
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
				// The cap of worker i is at most its proportional part, so the worker gets its cap.
				// The other workers share the rest.
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
	last := remainders[left-1].part // the lowest remainder that is rounded up
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
