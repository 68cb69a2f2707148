package lease

import (
	"cmp"
	"slices"
)

const (
	// leaseCost is what any lease costs beside its bytes, in bytes per second: with it idle leases
	// weigh something, the same, and little load is not worth a move.
	leaseCost = 16 << 10
	// overload is how far above its fair part a session has to be before anything moves for load.
	overload = 1.25
	// gain is by how much of the lease that moves the busier of two sessions has to be relieved for
	// an exchange to be worth it: leases that are nearly alike are not exchanged, and one that
	// would only carry the trouble elsewhere stays.
	gain = 0.5
	// exchangesInFlight bounds the moves that are under way while more are begun for load.
	exchangesInFlight = 16
	// partners is how many of the least loaded sessions are tried for each that is overloaded.
	partners = 4
)

// evenLoads exchanges leases of overloaded sessions for lighter ones of others, one for one, so
// that nobody's share changes; or gives one away where the other's share could as well be the
// bigger one. It begins when all have their share, and does only what is worth it: the busiest
// first, as long as it is overloaded, and only if the busier of the two comes out relieved by a
// margin. Each exchange makes the whole more even, so they come to an end.
func (p *planner) evenLoads(f Facts) {
	if !p.even() {
		return
	}
	p.weigh(f)
	left := min(p.movesLeft, exchangesInFlight-p.movesInFlight)
	for left >= 2 {
		var busiest *holder
		for _, h := range p.active {
			if !h.stuck && (busiest == nil || h.ratio() > busiest.ratio()) {
				busiest = h
			}
		}
		if busiest == nil || busiest.ratio() <= overload {
			return
		}
		best := p.exchange(busiest, f)
		if best.give == nil {
			busiest.stuck = true
			continue
		}
		left -= p.carry(best, f)
	}
}

// even reports whether there is nothing to do, or to wait for, but load.
func (p *planner) even() bool {
	for _, h := range p.active {
		if h.room != 0 {
			return false
		}
	}
	return len(p.active) > 1 && !slices.ContainsFunc(p.entries, func(e *entry) bool { return e.decision != 0 })
}

// weigh sets what each active session carries and what would be fair.
func (p *planner) weigh(f Facts) {
	var all, weights float64
	for _, h := range p.active {
		h.load = 0
		for _, e := range h.keeps {
			h.load += f.cost(e.Lease)
		}
		for _, e := range h.incoming {
			h.load += f.cost(e.Lease)
		}
		all += h.load
	}
	heaviest := slices.MaxFunc(p.active, func(a, b *holder) int { return cmp.Compare(a.weight, b.weight) }).weight
	for _, h := range p.active {
		h.fair = max(h.weight/heaviest, 1e-12)
		weights += h.fair
	}
	for _, h := range p.active {
		h.fair *= all / weights
	}
}

// cost is what a lease weighs, in bytes per second.
func (f Facts) cost(l *Lease) float64 { return leaseCost + f.load(l).Bytes() }

func (f Facts) load(l *Lease) Load {
	if steady, ok := f.Loads[l.Key]; ok {
		return steady
	}
	return min(l.Load, MaxLoad)
}

// ratio is what h carries relative to what would be fair, 0 when nobody carries anything.
func (h *holder) ratio() float64 {
	if h.fair <= 0 {
		return 0
	}
	return h.load / h.fair
}

// deal is an exchange between two sessions, or a gift without take.
type deal struct {
	from, to   *holder
	give, take *entry
	worst      float64 // the higher ratio of the two afterwards
}

// exchange finds the deal that relieves busiest most.
func (p *planner) exchange(busiest *holder, f Facts) deal {
	others := make([]*holder, 0, len(p.active))
	for _, h := range p.active {
		if h != busiest && h.spare() > 0 {
			others = append(others, h)
		}
	}
	slices.SortStableFunc(others, func(a, b *holder) int { return cmp.Compare(a.ratio(), b.ratio()) })
	best := deal{worst: busiest.ratio()}
	mine := busiest.samples(f)
	for _, other := range others[:min(partners, len(others))] {
		theirs := other.samples(f)
		try := func(give, take *entry) {
			moved := f.cost(give.Lease)
			if take != nil {
				moved -= f.cost(take.Lease)
			}
			worst := max((busiest.load-moved)/busiest.fair, (other.load+moved)/other.fair)
			if worst < best.worst && (busiest.ratio()-worst)*busiest.fair >= gain*f.cost(give.Lease) {
				best = deal{busiest, other, give, take, worst}
			}
		}
		gift := busiest.claims == other.claims+1 && busiest.weight == other.weight
		for _, give := range mine {
			if gift {
				try(give, nil)
			}
			for _, take := range theirs {
				if busiest.spare() > 0 {
					try(give, take)
				}
			}
		}
	}
	return best
}

// samples returns one lease of each class that h could give away, those that bring most first.
func (h *holder) samples(f Facts) []*entry {
	var byClass [int(MaxLoad) + 1]*entry
	for _, e := range h.keeps {
		if class := f.load(e.Lease); e.decision == 0 && byClass[class] == nil && !current(f.Cooling, e.Lease) {
			byClass[class] = e
		}
	}
	some := make([]*entry, 0, 8)
	for class := MaxLoad; ; class-- {
		if e := byClass[class]; e != nil {
			some = append(some, e)
		}
		if class == 0 {
			return some
		}
	}
}

// carry decides the moves of a deal and returns how many there are.
func (p *planner) carry(d deal, f Facts) int {
	move := func(e *entry, from, to *holder) {
		e.decision, e.to, e.why = Handoff, to, whyLoad
		from.claims--
		from.kept--
		from.going++
		to.claims++
		from.load -= f.cost(e.Lease)
		to.load += f.cost(e.Lease)
	}
	move(d.give, d.from, d.to)
	if d.take == nil {
		return 1
	}
	move(d.take, d.to, d.from)
	return 2
}
