package lease

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
)

// balance brings every active session to its share. What saves most comes first: wishes that are
// taken back cost nothing, leases that nobody reads are worse than any imbalance, those of a
// leaving worker will soon be read by nobody.
func (p *planner) balance() {
	for _, h := range p.active {
		h.had = h.claims
	}
	p.adopt()
	p.setRooms()
	for p.returnWishes() {
		p.setRooms()
	}
	p.preferFormer()

	var below needy
	for _, h := range p.active {
		if h.room > 0 {
			below = append(below, h)
		}
	}
	heap.Init(&below)
	for _, e := range p.free {
		if e.decision != 0 {
			continue
		}
		if h := p.elsewhere(below, e); h != nil {
			e.decision, e.to, e.why = Assign, h, whyShunned
			h.room--
			h.took++
		} else if h := below.take(p.avoided(e)); h != nil {
			e.decision, e.to, e.why = Assign, h, whyBelow
		}
	}
	for _, e := range p.leaving {
		if e.owner.drain && p.movesLeft <= 0 {
			continue
		}
		h := below.take(nil)
		if h == nil {
			break
		}
		e.decision, e.to, e.why = Handoff, h, whyLeaving
		if e.owner.elsewhere {
			e.why = whyNotItsOwn
		}
		if e.owner.drain {
			p.movesLeft--
		}
	}
	if p.mixed {
		p.fillIn()
	}
	p.redirectWishes(&below)
	p.shed(&below)
}

// adopt gives children to whoever has just finished one of their parents, also above its share: it
// beats quickly for a while, where another would not hear of them before its next beat. What it
// then has too much of is handed on, which leaves no shard unread for longer.
func (p *planner) adopt() {
	for _, e := range p.free {
		var heir *holder
		for _, parent := range e.Parents {
			l := p.leases.byKey[Key{e.Stream, parent}]
			if l == nil || !current(p.recent, l) {
				continue
			}
			h := p.sessions[l.Last]
			if h == nil || h.standing != active || h.cutOff {
				continue
			}
			room := h.claims < h.limit-h.idle-h.going-h.outside
			if room && (heir == nil || h.claims < heir.claims) {
				heir = h
			}
		}
		if heir != nil {
			e.decision, e.to, e.why = Assign, heir, whyParent
			heir.claims++
		}
	}
}

// setRooms compares what counts for each active session with what should.
func (p *planner) setRooms() {
	for _, h := range p.active {
		// What is on its way out fills the worker until it is gone. That takes nothing away from a
		// worker which is above its cap already.
		limit := max(h.limit-h.idle-h.beyond-h.base, 0)
		h.cap = max(limit-h.going, min(limit, h.kept))
		if h.cutOff {
			h.cap = min(h.cap, h.kept)
		}
	}
	p.setShares()
	for _, h := range p.active {
		h.room = h.share - h.claims
		if p.mixed && h.room > 0 { // its leases of other parts fill it until it has given them back
			h.room = max(0, min(h.room, h.limit-h.outside-h.idle-h.going-h.claims))
		}
	}
}

// returnWishes takes wishes to sessions above their share back where the owner is below its own. It
// reports whether there was one, in which case the owner is not as full as it was.
func (p *planner) returnWishes() (some bool) {
	for _, h := range p.active {
		if h.room >= 0 {
			continue
		}
		h.incoming = slices.DeleteFunc(h.incoming, func(e *entry) bool {
			back := h.room < 0 && e.owner.room > 0
			if back {
				p.withdraw(e)
				some = true
			}
			return back
		})
	}
	return some
}

// avoided is the session that should not get a free lease while another can.
func (p *planner) avoided(e *entry) *holder {
	if h := p.sessions[e.Revoked]; h != nil {
		return h
	}
	return p.sessions[e.Shunned]
}

// elsewhere finds a session that has its share already for a lease when the only one below its
// share is the one that gave it up: to give it back would only see it stall again. It has to be one
// that can give another in return, or as good as that one.
func (p *planner) elsewhere(below needy, e *entry) (best *holder) {
	shunned := p.sessions[e.Shunned]
	if shunned == nil || len(below) != 1 || below[0] != shunned {
		return nil
	}
	for _, h := range p.active {
		trades := len(h.keeps) > 0 || h.weight == shunned.weight
		if h != shunned && trades && h.spare() > 0 && (best == nil || h.room > best.room) {
			best = h
		}
	}
	return best
}

// spare is how many leases more h may come to hold, all that it has and will get counted.
func (h *holder) spare() int {
	if h.cutOff {
		return 0
	}
	return h.limit - h.outside - h.idle - h.going - max(h.claims, h.claims+h.room, h.share-h.room)
}

// withdraw lets the owner keep the lease that it was asked to hand to an active heir.
func (p *planner) withdraw(e *entry) {
	e.decision, e.to, e.why = Handoff, nil, whyBack
	e.heir.claims--
	e.heir.room++
	e.owner.going--
	e.owner.kept++
	if e.owner.standing == active {
		e.owner.claims++
		e.owner.room--
	}
	if e.owner.standing == active || e.owner.drain {
		p.movesLeft++
	}
}

// preferFormer gives free leases to the session that had them last and then, in a second round so
// that they take nothing from the first, to one that had a parent last.
func (p *planner) preferFormer() {
	give := func(e *entry, session string, why reason) {
		h := p.sessions[session]
		if e.decision == 0 && h != nil && h.room > 0 && session != e.Revoked && session != e.Shunned {
			e.decision, e.to, e.why = Assign, h, why
			h.room--
			h.took++
		}
	}
	for _, e := range p.free {
		give(e, e.Last, whyLast)
	}
	for _, e := range p.free {
		for _, parent := range e.Parents {
			if l := p.leases.byKey[Key{e.Stream, parent}]; l != nil {
				give(e, l.Last, whyParent)
			}
		}
	}
}

// redirectWishes finds new heirs where the old one has become impossible, or has too much. Where
// there is none, the owner keeps the lease: the wish would lead to a dead session, or above a cap.
func (p *planner) redirectWishes(below *needy) {
	for _, h := range p.active {
		for _, e := range h.stranded {
			if h.room >= 0 || p.movesLeft <= 0 {
				break
			}
			if to := below.take(nil); to != nil {
				e.to, e.why = to, whyHeirless
				h.room++
				p.movesLeft--
			}
		}
		for _, e := range h.incoming {
			if h.room >= 0 {
				break
			}
			if to := below.take(nil); to == nil {
				p.withdraw(e)
			} else {
				e.decision, e.to, e.why = Handoff, to, whyBelow
				h.room++
			}
		}
	}
}

// shed wishes leases away from the sessions that are above their share, those that are furthest
// above first.
func (p *planner) shed(below *needy) {
	type offer struct {
		*entry
		above int // how far its owner is above its share without the offers before
	}
	var offers []offer
	for _, h := range p.active {
		if h.room >= 0 {
			continue
		}
		var rested, moved, fresh []*entry
		for _, e := range h.keeps {
			switch {
			case current(p.recent, e.Lease):
				// a child that has hardly begun to be read is handed on after it was
				if len(e.Parents) == 0 {
					fresh = append(fresh, e)
				}
			case current(p.cooling, e.Lease):
				moved = append(moved, e)
			default:
				rested = append(rested, e)
			}
		}
		// What changed hands lately did so for a reason: whoever gave it up as stuck is not to have
		// it back before anybody read it.
		n := -h.room
		var give []*entry
		for _, list := range [][]*entry{rested, moved, fresh} {
			give = append(give, spread(list, min(n-len(give), len(list)))...)
		}
		for i, e := range give {
			offers = append(offers, offer{e, -h.room - i})
		}
	}
	slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(b.above, a.above) })
	for _, o := range offers {
		if p.movesLeft <= 0 {
			return
		}
		to := below.take(nil)
		if to == nil {
			return
		}
		o.decision, o.to, o.why = Handoff, to, whyShare
		p.movesLeft--
	}
}

// spread takes n of a sorted list, from all over it: a worker that joins gets some of each stream.
func spread(list []*entry, n int) []*entry {
	some := make([]*entry, n)
	for i := range some {
		some[i] = list[i*len(list)/n]
	}
	return some
}

// needy is a heap of the sessions below their share, the one furthest below on top.
type needy []*holder

// take returns the session furthest below its share, which is one less below now, or nil when there
// is none. It returns avoid only if there is no other.
func (n *needy) take(avoid *holder) *holder {
	q := *n
	if len(q) == 0 {
		return nil
	}
	at := 0
	if q[0] == avoid && len(q) > 1 {
		at = 1 // the runner-up is right below the top
		if len(q) > 2 && q.Less(2, 1) {
			at = 2
		}
	}
	h := q[at]
	h.took++
	if h.room--; h.room == 0 {
		heap.Remove(n, at)
	} else {
		heap.Fix(n, at)
	}
	return h
}

func (n needy) Len() int      { return len(n) }
func (n needy) Swap(i, j int) { n[i], n[j] = n[j], n[i] }
func (n *needy) Push(x any)   { *n = append(*n, x.(*holder)) }

func (n needy) Less(i, j int) bool {
	if c := cmp.Compare(n[i].room, n[j].room); c != 0 {
		return c > 0
	}
	return strings.Compare(n[i].session, n[j].session) < 0
}

func (n *needy) Pop() any {
	q := *n
	last := q[len(q)-1]
	*n = q[:len(q)-1]
	return last
}
