package lease

import (
	"cmp"
	"slices"
	"strings"
)

// # Streams
//
// Sessions may read different streams ([Worker.Streams]). A plan then has several parts. Each part
// contains the streams that are read by the same sessions. A part is planned like a separate
// application, by a planner with its own copies of the holders. Parts with few readers are planned
// first. Later parts consider what their sessions got in earlier parts.

// These constants are the permissions of an active session for the leases of a stream.
const (
	mayRead = 'r' // the session may get the leases
	mayKeep = 'k' // the session did not report its streams, and keeps its current leases
	mayNot  = '-' // the session must release the leases
)

// nameSet is a parsed [Streams].
type nameSet struct {
	known, hashed bool
	names         map[string]bool
}

func (s Streams) set() nameSet {
	n := nameSet{known: s.Known(), hashed: strings.HasPrefix(string(s), streamHashes), names: map[string]bool{}}
	if n.known {
		for entry := range strings.SplitSeq(string(s[len(streamNames):]), " ") {
			n.names[strings.TrimPrefix(entry, listedMark)] = true
		}
	}
	return n
}

func (n nameSet) has(stream string) bool {
	if n.hashed {
		stream = hashName(stream)
	}
	return n.names[stream] && stream != ""
}

// leaderStreams returns the streams that the leader reads. A session that did not report its
// streams may get leases of these streams.
func leaderStreams(v View, f Facts) Streams {
	if f.Streams.Known() {
		return f.Streams
	}
	for i := range v.Workers {
		if w := &v.Workers[i]; w.Session == v.Leader.Session && w.Session != "" && !w.Ended {
			return w.Streams
		}
	}
	return ""
}

// split returns the parts of the plan, those with the fewest readers first. It adds each entry to
// its part.
func (p *planner) split(v View, f Facts) []*planner {
	texts := map[Streams]int{} // indexes of the distinct Streams of sessions that may hold leases
	for _, h := range p.sorted {
		if h.standing == active || h.standing == leaving {
			texts[h.streams.unmarked()] = 0
		}
	}
	sets := make([]nameSet, 0, len(texts))
	for text := range texts {
		texts[text] = len(sets)
		sets = append(sets, text.set())
	}
	leads := leaderStreams(v, f).set()
	may := func(set nameSet, stream string) byte {
		switch {
		case set.known && set.has(stream), !set.known && (!leads.known || leads.has(stream)):
			return mayRead
		case !set.known:
			return mayKeep
		default:
			return mayNot
		}
	}
	of := func(signature []byte, h *holder) byte {
		if place, ok := texts[h.streams.unmarked()]; ok {
			return signature[place]
		}
		return mayNot
	}

	var parts []*planner
	bySignature := map[string]*planner{}
	byStream := map[string]*planner{}
	signature := make([]byte, len(sets))
	for _, e := range p.entries {
		part := byStream[e.Stream]
		if part == nil {
			for i, set := range sets {
				signature[i] = may(set, e.Stream)
			}
			if part = bySignature[string(signature)]; part == nil {
				part = p.part(func(h *holder) byte { return of(signature, h) })
				bySignature[string(signature)] = part
				parts = append(parts, part)
			}
			byStream[e.Stream] = part
		}
		part.entries = append(part.entries, e)
	}
	slices.SortStableFunc(parts, func(a, b *planner) int { return cmp.Compare(a.readers, b.readers) })
	return parts
}

// part returns a planner for one part. may returns a session's permission for the streams of the
// part.
func (p *planner) part(may func(*holder) byte) *planner {
	part := &planner{
		leases: p.leases, paused: p.paused, recent: p.recent, cooling: p.cooling,
		sessions: make(map[string]*holder, len(p.sorted)), sorted: make([]*holder, 0, len(p.sorted)),
	}
	well := false // at least one reader is not cut off
	for _, all := range p.sorted {
		h := *all
		part.sessions[h.session], part.sorted = &h, append(part.sorted, &h)
		h.may = may(all)
		switch {
		case h.standing != active:
		case h.may == mayNot:
			h.standing, h.elsewhere = leaving, true
		default:
			part.active = append(part.active, &h)
			if h.may == mayRead {
				part.readers++
				well = well || !h.cutOff
			}
		}
	}
	if part.readers == 0 {
		// All readers of this part drain, so no other session could take their leases. They count
		// as active, as in a plan without active sessions.
		for _, h := range part.sorted {
			if h.drain && h.may == mayRead {
				h.standing, h.drain = active, false
				part.active = append(part.active, h)
				part.readers++
				well = well || !h.cutOff
			}
		}
	}
	for _, h := range part.active {
		h.cutOff = h.may == mayKeep || h.cutOff && well
	}
	part.unread = len(p.active) > 0 && part.readers == 0
	return part
}

// crowd computes how much of each session's cap the other parts of a plan use. The parts with an
// index below before are already planned.
func (p *planner) crowd(parts []*planner, before int) {
	p.mixed = len(parts) > 1
	if !p.mixed {
		return
	}
	for i, other := range parts {
		if other == p {
			continue
		}
		for j, o := range other.sorted { // the order is the same in all parts
			h := p.sorted[j]
			h.outside += o.idle + o.going + o.leaves + o.claims + o.took
			h.beyond += o.idle
			if i < before {
				h.base += o.share
			}
		}
	}
}

// setShares sets the shares of a part.
func (p *planner) setShares() {
	if !p.mixed {
		setShares(p.active, p.withWork)
		return
	}
	for _, h := range p.active {
		h.share = 0
	}
	// Each lease in turn goes to the session whose share is lowest for its weight. Shares in
	// earlier parts count as well. Among equal sessions the lease stays with its owner.
	for range p.withWork {
		var best *holder
		for _, h := range p.active {
			if h.share < h.cap && (best == nil || h.before(best)) {
				best = h
			}
		}
		if best == nil {
			return
		}
		best.share++
	}
}

// before reports whether h gets a lease before other when shares are set.
func (h *holder) before(other *holder) bool {
	due := func(h *holder) float64 { return float64(h.base+h.share+1) / h.weight }
	return cmp.Or(
		cmp.Compare(due(h), due(other)),
		cmp.Compare(other.claims-other.share, h.claims-h.share),
		cmp.Compare(len(h.incoming), len(other.incoming)),
		strings.Compare(h.session, other.session),
	) < 0
}

// fillIn gives the remaining free leases, and the remaining leases of leaving sessions, to any
// session below its cap. According to the shares another session should have them, but that session
// is full of leases of other parts. That session gets the leases once it has released leases of
// other parts.
func (p *planner) fillIn() {
	for _, list := range [][]*entry{p.free, p.leaving} {
		for _, e := range list {
			if e.decision != 0 || e.owner != nil && e.owner.drain {
				continue
			}
			var best *holder
			for _, h := range p.active {
				room := h.limit - h.outside - h.idle - h.going - h.claims - h.took
				if room > 0 && !h.cutOff && (best == nil || h.room > best.room) {
					best = h
				}
			}
			if best == nil {
				break
			}
			best.room--
			best.took++
			switch {
			case e.owner == nil:
				e.decision, e.to, e.why = Assign, best, whyBelow
			case e.owner.elsewhere:
				e.decision, e.to, e.why = Handoff, best, whyNotItsOwn
			default:
				e.decision, e.to, e.why = Handoff, best, whyLeaving
			}
		}
	}
}
