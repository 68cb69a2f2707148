package lease

import (
	"cmp"
	"slices"
)

const (
	// leaseCost is the fixed cost of a lease in bytes per second, in addition to its load. It gives
	// idle leases an equal weight. It also prevents moves for little load.
	leaseCost = 16 << 10
	// overload is the ratio of a session's load to its fair load above which leases move because of
	// load.
	overload = 1.25
	// gain is the minimum relief for the busier of two sessions, as a fraction of the moved lease.
	// It prevents exchanges of nearly equal leases, and moves that would only overload the other
	// session.
	gain = 0.5
	// exchangesInFlight is the number of moves in flight above which no more moves start because of
	// load.
	exchangesInFlight = 16
	// partners is the number of least loaded sessions to try for each overloaded session.
	partners = 4
)

// evenLoads exchanges leases of overloaded sessions for lighter leases of other sessions, one for
// one, so that no share changes. A lease may move without an exchange if the overloaded session has
// exactly one lease more than a session of the same weight. Either of these two could have the
// larger share. evenLoads runs only when all sessions have their share. It begins with the busiest
// session and continues while that session is overloaded. An exchange must relieve the busier of
// the two sessions by a margin. Each exchange makes the loads more even, so the number of exchanges
// is finite.
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

// even reports whether only the load can be improved: every session has its share, and the plan
// changes no lease so far.
func (p *planner) even() bool {
	for _, h := range p.active {
		if h.room != 0 {
			return false
		}
	}
	return len(p.active) > 1 && !slices.ContainsFunc(p.entries, func(e *entry) bool { return e.decision != 0 })
}

// weigh sets the load and the fair load of each active session.
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

// cost returns the weight of a lease in bytes per second.
func (f Facts) cost(l *Lease) float64 { return leaseCost + f.load(l).Bytes() }

func (f Facts) load(l *Lease) Load {
	if steady, ok := f.Loads[l.Key]; ok {
		return steady
	}
	return min(l.Load, MaxLoad)
}

// ratio returns the load of h relative to its fair load. It returns 0 if there is no load.
func (h *holder) ratio() float64 {
	if h.fair <= 0 {
		return 0
	}
	return h.load / h.fair
}

// deal is an exchange between two sessions. Without take, the lease moves in one direction only.
type deal struct {
	from, to   *holder
	give, take *entry
	worst      float64 // the higher ratio of the two afterwards
}

// exchange returns the deal after which the higher ratio of the two sessions is lowest. Its give is
// nil if no deal relieves the busiest session enough.
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

// samples returns one lease of each class that h could hand on, the busiest classes first.
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

// carry makes the decisions of a deal and returns the number of moves.
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
