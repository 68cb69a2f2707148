package protocol

import (
	"math/bits"

	"github.com/weir-go/weir/lease"
)

// The capacity of a state. Random walks need the most.
const (
	maxSessions = 6
	maxLeases   = 3
	maxLate     = 2
)

// nobody is the reference to no session. The session at index i of a state has the reference i+1.
const nobody = 0

// oldest is the largest distance that is stored for an epoch. It stands for all epochs before the
// previous one, because no condition distinguishes them.
const oldest = 2

// life is the state of the process that uses a session.
type life uint8

const (
	unborn  life = iota // the place is free
	running             // sends heartbeats, reads, and may lead
	over                // crashed, or continues with another session
)

// rowState is the stored state of a session.
type rowState uint8

const (
	absent rowState = iota
	alive
	ended
)

// hold is a process's view of one lease.
type hold uint8

const (
	nothing  hold = iota
	reading       // a term whose reader runs while the lease is valid
	givingUp      // a term whose reader has returned; the next heartbeat releases it
)

// term is a view of a lease with its epoch. The epoch is the distance to the epoch of the row: 0
// means the current one.
type term struct {
	hold hold
	back uint8
}

// session is one run of a worker: its process, and its row in the store. Ages count the ticks of
// the process's own clock. 0 means no age, and n+1 means an age of n.
type session struct {
	life  life
	first bool // no heartbeat has been answered yet

	row rowState

	// age is the age of the last successful heartbeat, measured from before it was sent.
	age uint8
	// answer is the age of a heartbeat that the store has carried out and whose answer is in
	// flight. held contains the leases that the answer names: 0 if it does not name the lease,
	// otherwise 1 + the distance of the lease's epoch.
	answer uint8
	held   [maxLeases]uint8
	terms  [maxLeases]term

	// seen is used with Model.OwnWatch. It is how long the heartbeat counts of the other sessions
	// have not changed, as this process has watched them. If a count changes, it is watched again
	// only after the process has read it again. Without Model.OwnWatch, the field named still is
	// used instead: how long the count of this session itself has not changed.
	seen  [maxSessions]uint8
	still uint8

	name uint8 // only for traces
}

// row is a lease in the store. Its epoch is not stored, because all other epochs are distances to
// it.
type row struct {
	owner, heir, revoked uint8 // references
	// noted means that the answer to every heartbeat shows the revocation. Before that, answers may
	// still name the lease, and in the model they do. noted becomes true when the Apply that wrote
	// the revocation returns, or when a Tell returns.
	noted bool
	// told is how long the old owner must have known of the revocation, on the leader's clock.
	told uint8

	name, epoch uint8 // only for traces
}

// callKind is the kind of a call in flight.
type callKind uint8

const (
	noCall callKind = iota
	callEndSession
	callAssign
	callHandoff
	callRevoke
	callForget
	callLead
	callBeat  // an abandoned heartbeat
	callLeave // a leave whose sender is gone
)

// kindOf maps the calls of leaders to the kinds of action in package lease.
var kindOf = map[callKind]lease.Kind{
	callEndSession: lease.EndSession, callAssign: lease.Assign, callHandoff: lease.Handoff,
	callRevoke: lease.Revoke, callForget: lease.Forget,
}

// call is one conditional write whose sender no longer waits for it. Instead of epochs, heartbeat
// counts and terms, it contains whether they are still current. A call whose condition can never
// hold again is dropped.
type call struct {
	kind  callKind
	from  uint8 // reference to the sender of a heartbeat or leave
	lease uint8
	to    uint8 // reference to the affected session
	moved bool  // the count of an EndSession is no longer current
	// stale means that the epoch or term is not current. Such calls matter only if a planted bug
	// accepts them.
	stale   bool
	first   bool // for a heartbeat
	resigns bool // for a heartbeat
	// release is used for a heartbeat or leave: 0 if it does not release the lease, otherwise 1 +
	// the distance of the released epoch.
	release [maxLeases]uint8
	save    [maxLeases]uint8 // the same for saved positions; not for late calls
}

// onLease reports whether the call is about one lease and depends on its epoch.
func (c *call) onLease() bool {
	return c.kind == callAssign || c.kind == callHandoff || c.kind == callRevoke
}

// state is the complete state: the store, the processes, calls in flight, and the remaining faults.
type state struct {
	sessions [maxSessions]session
	leases   [maxLeases]row
	late     [maxLate]call // calls whose senders no longer wait
	leader   uint8
	left     Faults

	// spoiled means that a checkpoint of another epoch was accepted. The search ends there.
	spoiled bool
	names   uint8 // number of names given to sessions; only for traces
}

// Faults limits how often each fault may happen in one history.
type Faults struct {
	Crashes, Lost, Late, Drift uint8
	Handoffs, Revokes, Resigns uint8
	Leaves                     uint8
}

// pack encodes a state as bytes, without the data for traces. Equal bytes mean equal states.
func (m *Model) pack(buf []byte, s *state) []byte {
	for i := range m.places {
		p := &s.sessions[i]
		buf = append(buf,
			uint8(p.life)|bit(p.first)<<2|uint8(p.row)<<3,
			p.age|p.answer<<4)
		for l := range m.Leases {
			buf = append(buf, uint8(p.terms[l].hold)|p.terms[l].back<<2|p.held[l]<<4)
		}
		buf = append(buf, p.still)
		if m.OwnWatch {
			buf = append(buf, p.seen[:m.places]...)
		}
	}
	for l := range m.Leases {
		r := &s.leases[l]
		buf = append(buf, r.owner|r.heir<<4, r.revoked|bit(r.noted)<<4, r.told)
	}
	for i := range s.late {
		buf = m.packCall(buf, &s.late[i])
	}
	f := &s.left
	return append(buf, s.leader|f.Crashes<<4, f.Lost|f.Late<<4, f.Drift|f.Handoffs<<4, f.Revokes|f.Resigns<<4, f.Leaves)
}

func (m *Model) packCall(buf []byte, c *call) []byte {
	buf = append(buf, uint8(c.kind))
	if c.kind == noCall {
		return buf
	}
	buf = append(buf, c.from|c.to<<4,
		c.lease|bit(c.moved)<<2|bit(c.stale)<<3|bit(c.first)<<4|bit(c.resigns)<<5)
	if c.kind == callBeat || c.kind == callLeave {
		for l := range m.Leases {
			buf = append(buf, c.release[l])
		}
	}
	return buf
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// hash is a 128-bit hash of a packed state. For ten million states, two of them collide by chance
// once in 10^24 runs.
type hash struct{ a, b uint64 }

func hashOf(packed []byte) hash {
	p := hash{0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f}
	for len(packed) > 0 {
		var word uint64
		n := min(8, len(packed))
		for i := range n {
			word |= uint64(packed[i]) << (8 * i)
		}
		packed = packed[n:]
		hi, lo := bits.Mul64(p.a^word, 0xa0761d6478bd642f)
		p.a = hi ^ lo
		hi, lo = bits.Mul64(p.b+word, 0xe7037ed1a0b428db)
		p.b = bits.RotateLeft64(hi^lo, 29) ^ word
	}
	hi, lo := bits.Mul64(p.a^0x8ebc6af09c88c6e3, p.b^0x589965cc75374cc3)
	p.a, p.b = p.a^hi, p.b^lo
	return p
}

// canonical sorts sessions and leases independently of their places. States that differ only by
// names then become one. If the order has ties, two such states may remain.
func (m *Model) canonical(s *state) {
	m.sortLeases(s)
	var rank [maxSessions]uint64
	for i := range m.places {
		rank[i] = m.rankOf(s, i)
	}
	var order [maxSessions]uint8 // order[new] = old
	sorted := true
	for i := range m.places {
		j := i
		for ; j > 0 && rank[order[j-1]] < rank[i]; j-- {
			order[j] = order[j-1]
			sorted = false
		}
		order[j] = uint8(i)
	}
	if !sorted {
		m.reorder(s, order)
	}
}

// reorder moves every session to another place. order contains the old place for each new one.
func (m *Model) reorder(s *state, order [maxSessions]uint8) {
	var place [maxSessions + 1]uint8 // new reference by old reference
	for to, from := range order[:m.places] {
		place[from+1] = uint8(to + 1)
	}
	old := s.sessions
	for to := range m.places {
		s.sessions[to] = old[order[to]]
		p := &s.sessions[to]
		for j := range m.places {
			p.seen[j] = old[order[to]].seen[order[j]]
		}
	}
	for l := range m.Leases {
		r := &s.leases[l]
		r.owner, r.heir, r.revoked = place[r.owner], place[r.heir], place[r.revoked]
	}
	for i := range s.late {
		s.late[i].from, s.late[i].to = place[s.late[i].from], place[s.late[i].to]
	}
	s.leader = place[s.leader]
}

// rankOf returns a summary of a session. The summary does not depend on the names of other
// sessions.
func (m *Model) rankOf(s *state, i int) uint64 {
	p, ref := &s.sessions[i], uint8(i+1)
	r := uint64(p.life) | uint64(p.row)<<2 | uint64(bit(p.first))<<4 | uint64(bit(s.leader == ref))<<5 |
		uint64(p.age)<<6 | uint64(p.answer)<<10
	for l := range m.Leases {
		t, w := p.terms[l], &s.leases[l]
		r = r*3 + uint64(bit(w.owner == ref))
		r = r*31 + uint64(t.hold)<<2 + uint64(t.back)
		r = r*37 + uint64(p.held[l])<<1 + uint64(bit(w.heir == ref)) + uint64(bit(w.revoked == ref))*11
	}
	r += uint64(p.still) << 36
	for j := range m.places {
		if !m.OwnWatch {
			break
		}
		r += uint64(p.seen[j])<<40 + uint64(s.sessions[j].seen[i])<<48
	}
	return r
}

// sortLeases sorts the leases by data that contains no session names. With one lease it does
// nothing.
func (m *Model) sortLeases(s *state) {
	if m.Leases < 2 {
		return
	}
	rank := func(l int) (r uint64) {
		w := &s.leases[l]
		r = uint64(bit(w.owner != 0)) | uint64(bit(w.heir != 0))<<1 | uint64(bit(w.revoked != 0))<<2 | uint64(bit(w.noted))<<3 | uint64(w.told)<<56
		for i := range m.places {
			p := &s.sessions[i]
			of := uint64(p.terms[l].hold) + uint64(p.terms[l].back)*3 + uint64(p.held[l])*11
			of *= uint64(p.age) + 17*uint64(p.answer) + 1 // sums do not depend on places
			r += of << 4
		}
		return r
	}
	for i := 1; i < m.Leases; i++ {
		for j := i; j > 0 && rank(j-1) < rank(j); j-- {
			m.swapLeases(s, j-1, j)
		}
	}
}

func (m *Model) swapLeases(s *state, x, y int) {
	s.leases[x], s.leases[y] = s.leases[y], s.leases[x]
	swap := func(c *call) {
		switch {
		case !c.onLease():
		case int(c.lease) == x:
			c.lease = uint8(y)
		case int(c.lease) == y:
			c.lease = uint8(x)
		}
		c.release[x], c.release[y] = c.release[y], c.release[x]
	}
	for i := range m.places {
		p := &s.sessions[i]
		p.terms[x], p.terms[y] = p.terms[y], p.terms[x]
		p.held[x], p.held[y] = p.held[y], p.held[x]
	}
	for i := range s.late {
		swap(&s.late[i])
	}
}
