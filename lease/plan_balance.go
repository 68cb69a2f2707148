package lease

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
)

// balance moves leases until every active session has its share. The cheapest steps come first, and
// withdrawing a handoff is free. Unread leases are worse than any imbalance, so they come next.
// Leases of leaving workers follow, because they will soon be unread.
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

// adopt assigns children to the session that has just finished one of their parents, even above its
// share. That session sends frequent heartbeats for a while. Another session would learn of the
// lease only with its next heartbeat. The session hands its excess leases on later. This leaves no
// shard unread for longer.
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

// setRooms sets the room of each active session: its share minus its claims.
func (p *planner) setRooms() {
	for _, h := range p.active {
		h.setCap()
	}
	p.setShares()
	for _, h := range p.active {
		h.room = h.share - h.claims
		// The session's leases of other parts occupy the session until it has released them.
		if p.mixed && h.room > 0 {
			h.room = max(0, min(h.room, h.limit-h.outside-h.idle-h.going-h.claims))
		}
	}
}

// setCap sets the number of leases that may count for h.
func (h *holder) setCap() {
	// Leases that are being handed off occupy the worker until they are gone, so they reduce its
	// cap. They do not reduce the cap below the leases that the worker keeps.
	limit := max(h.limit-h.idle-h.beyond-h.base, 0)
	h.cap = max(limit-h.going, min(limit, h.kept))
	if h.cutOff {
		h.cap = min(h.cap, h.kept)
	}
}

// returnWishes withdraws handoffs to sessions above their share if the owner is below its own
// share. It reports whether it withdrew a handoff. In that case the owner has fewer leases to hand
// on than before.
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

// avoided returns the session that should get a free lease only if no other session can.
func (p *planner) avoided(e *entry) *holder {
	if h := p.sessions[e.Revoked]; h != nil {
		return h
	}
	return p.sessions[e.Shunned]
}

// elsewhere returns another session for a lease that stalled. It returns nil unless exactly one
// session is below its share, and that session is the one that released the stalled lease. That
// session would probably stall again. The result already has its share. It either has a lease that
// it can give in return, or has the same weight as the session below its share.
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

// spare returns how many more leases h may get. It considers current and planned leases.
func (h *holder) spare() int {
	if h.cutOff {
		return 0
	}
	return h.limit - h.outside - h.idle - h.going - max(h.claims, h.claims+h.room, h.share-h.room)
}

// withdraw cancels the handoff of a lease to an active heir, so that the owner keeps the lease.
func (p *planner) withdraw(e *entry) {
	e.decision, e.to, e.why = Handoff, nil, whyBack
	e.heir.claims--
	e.heir.room++
	e.owner.going--
	e.owner.kept++
	if e.owner.standing == active {
		e.owner.claims++
		e.owner.room--
		e.owner.stranded = append(e.owner.stranded, e)
	}
	if e.owner.standing == active || e.owner.drain {
		p.movesLeft++
	}
}

// widen raises the share of an active session that has just got back a lease. The handoff of that
// lease may have reduced its cap, and with it its share.
func (h *holder) widen() {
	if h.standing != active || h.share != h.cap {
		return
	}
	h.setCap()
	h.room += h.cap - h.share
	h.share = h.cap
}

// preferFormer assigns free leases to their last owners. In a second round it assigns free leases
// to the last owner of one of their parents. The second round does not change the assignments of
// the first.
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

// redirectWishes finds a new heir for a handoff if the old heir can no longer take the lease or has
// too many leases. If there is no new heir, the owner keeps the lease.
func (p *planner) redirectWishes(below *needy) {
	for _, h := range p.active {
		for _, e := range h.stranded {
			if h.room >= 0 || p.movesLeft <= 0 {
				break
			}
			if to := below.take(nil); to != nil {
				e.to = to
				if e.heir != nil {
					e.why = whyBelow // withdrawn by this plan
				}
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
				e.owner.widen()
			} else {
				e.decision, e.to, e.why = Handoff, to, whyBelow
				h.room++
			}
		}
	}
}

// shed requests handoffs from sessions above their share. It begins with the sessions furthest
// above.
func (p *planner) shed(below *needy) {
	type offer struct {
		*entry
		above int // how far its owner is above its share without the earlier offers
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
				// A child that was just assigned stays. Another lease that was just assigned comes
				// last.
				if len(e.Parents) == 0 {
					fresh = append(fresh, e)
				}
			case current(p.cooling, e.Lease):
				moved = append(moved, e)
			default:
				rested = append(rested, e)
			}
		}
		// Leases that changed owner recently did so for a reason. A session that gave up a stalled
		// lease should not get it back before another session has read it.
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

// spread picks n elements evenly from a sorted list. A worker that joins therefore gets leases of
// every stream.
func spread(list []*entry, n int) []*entry {
	some := make([]*entry, n)
	for i := range some {
		some[i] = list[i*len(list)/n]
	}
	return some
}

// needy is a heap of sessions below their share. The session furthest below is on top.
type needy []*holder

// take returns the session furthest below its share and counts one more lease for it. It returns
// avoid only if there is no other such session, and nil if there is none at all.
func (n *needy) take(avoid *holder) *holder {
	q := *n
	if len(q) == 0 {
		return nil
	}
	at := 0
	if q[0] == avoid && len(q) > 1 {
		at = 1 // the second is directly below the top
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
