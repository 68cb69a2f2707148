package protocol

// Model is one size of the protocol, with its constants and its faults.
type Model struct {
	Workers  int // processes that run at the same time
	Sessions int // sessions that the store and the network know at the same time; at least Workers
	Leases   int
	// Failover is the number of ticks, on the watcher's clock, after which an unchanged count
	// proves a death. A worker's leases are valid while its last successful heartbeat is at most
	// Validity ticks old on the worker's own clock. Validity plus the drift must be less than
	// Failover.
	Failover, Validity uint8
	Faults             Faults
	// OwnWatch gives each process its own watch, which begins with a read. Without OwnWatch, every
	// process knows how long each count has not changed in the store. A watch never measures a
	// longer time than that. So without OwnWatch the model can end every session that a worker
	// could end by its own watch, and it has far fewer states.
	OwnWatch bool
	Bug      Bug

	places int
}

// Bug is a bug that is planted into the protocol.
type Bug uint8

// The planted bugs.
const (
	NoBug Bug = iota
	// ValidityFromTheAnswer measures lease validity from the arrival of a heartbeat's answer,
	// instead of from before the heartbeat was sent.
	ValidityFromTheAnswer
	// EndOfAnyCount applies EndSession with any heartbeat count.
	EndOfAnyCount
	// WatchOutlivesTheCount keeps an observation although the count has changed.
	WatchOutlivesTheCount
	// AssignmentOfRevoked assigns a revoked lease without waiting.
	AssignmentOfRevoked
	// WaitWithoutTelling starts to wait when the leader sees the revocation, without a Tell.
	WaitWithoutTelling
	// AcknowledgementAtAnyEpoch accepts a release at any epoch by the session in Revoked.
	AcknowledgementAtAnyEpoch
	// ReleaseAtAnyEpoch accepts a release at any epoch by the owner.
	ReleaseAtAnyEpoch
	// CheckpointAtAnyEpoch accepts a checkpoint at any epoch by the owner.
	CheckpointAtAnyEpoch
	// AssignmentAtAnyEpoch applies Assign, Handoff and Revoke although the epoch of the lease has
	// changed.
	AssignmentAtAnyEpoch
	// ResignationOfAnybody ends the leader's role when another session resigns.
	ResignationOfAnybody
	// ReleaseWhileReading releases a lease before its reader has returned.
	ReleaseWhileReading
	// NobodyTakesOver lets workers campaign only if there is no leader, and not after the leader's
	// death.
	NobodyTakesOver
	// ForgetsEarly removes an ended session while calls that name it, or that it sent, are in
	// flight.
	ForgetsEarly
)

// New returns a model that is ready for the search.
func New(m Model) *Model {
	m.places = max(m.Sessions, m.Workers)
	return &m
}

// initial returns an application whose workers have just begun. No lease has an owner.
func (m *Model) initial() state {
	s := state{left: m.Faults}
	for l := range m.Leases {
		s.leases[l].name, s.leases[l].epoch = uint8(l+1), 1
	}
	for i := range m.Workers {
		m.begin(&s, i)
	}
	m.settle(&s)
	return s
}

// restart begins a session for each worker without one, if there is a free place. The first visible
// effect of a session is its first heartbeat, so the model restarts workers at once.
func (m *Model) restart(s *state) {
	now, free := 0, -1
	for i := range m.places {
		switch p := &s.sessions[i]; {
		case p.life == running:
			now++
		case free >= 0 && s.sessions[free].life == unborn:
		case p.life == unborn && p.row == absent:
			free = i
		case p.life == over && p.row == ended && !m.mentioned(s, i):
			free = i // a leader has removed it in between
		}
	}
	if now < m.Workers && free >= 0 {
		s.sessions[free].row = absent
		for j := range m.places {
			s.sessions[j].seen[free] = 0
		}
		m.begin(s, free)
		m.restart(s)
	}
}

// mentioned reports whether the store or a call in flight names a session.
func (m *Model) mentioned(s *state, i int) bool {
	for l := range m.Leases {
		if w := &s.leases[l]; w.owner == ref(i) || w.heir == ref(i) || w.revoked == ref(i) {
			return true
		}
	}
	return m.underWay(s, i)
}

// underWay reports whether a session is named by a late call or has sent one.
func (m *Model) underWay(s *state, i int) bool {
	for j := range s.late {
		if s.late[j].to == ref(i) || s.late[j].from == ref(i) {
			return true
		}
	}
	return false
}

// begin starts a worker with a new session.
func (m *Model) begin(s *state, i int) {
	s.names++
	s.sessions[i] = session{life: running, first: true, name: s.names}
}

// holdsValid reports whether a process may call handlers for a lease. Its reader must be running,
// and the last successful heartbeat must be recent enough by its own clock. In the code, the type
// validity of internal/group decides this.
func (m *Model) holdsValid(p *session, l int) bool {
	return p.life == running && !p.first && p.terms[l].hold == reading && p.age != 0 && p.age-1 <= m.Validity
}

// These are the promises of the protocol. Each text describes how the promise is broken.
const (
	brokenValidity   = "one lease is valid for two workers"
	brokenEpoch      = "an epoch has two owners"
	brokenRevocation = "a lease was assigned again while it was still valid for its old owner"
	brokenCheckpoint = "a checkpoint of an old epoch was accepted"
	brokenRole       = "a leader lost its role because another session resigned"
)

// broken returns the promise that a state breaks, or "".
func (m *Model) broken(s *state) string {
	if s.spoiled {
		return brokenCheckpoint
	}
	for l := range m.Leases {
		w := &s.leases[l]
		var at [oldest]uint8 // the session that believes to hold each epoch
		holders := 0
		for i := range m.places {
			p := &s.sessions[i]
			if p.life != running {
				continue
			}
			if m.holdsValid(p, l) {
				holders++
			}
			t := p.terms[l]
			if t.hold == nothing || t.back >= oldest {
				continue
			}
			if at[t.back] != nobody || t.back == 0 && w.owner != ref(i) {
				return brokenEpoch
			}
			at[t.back] = ref(i)
		}
		if holders > 1 {
			return brokenValidity
		}
		for i := range m.places {
			p := &s.sessions[i]
			if m.holdsValid(p, l) && p.terms[l].back > 0 && (w.owner != nobody || w.revoked != ref(i) || p.terms[l].back > 1) {
				return brokenRevocation
			}
		}
	}
	return ""
}

// served reports whether every lease is read by a worker that owns it.
func (m *Model) served(s *state) bool {
	for l := range m.Leases {
		w := &s.leases[l]
		if w.owner == nobody {
			return false
		}
		p := &s.sessions[w.owner-1]
		if !m.holdsValid(p, l) || p.terms[l].back != 0 {
			return false
		}
	}
	return true
}

// settle normalizes states that have the same future. It clears irrelevant data, and frees the
// places of sessions that no later call can name.
func (m *Model) settle(s *state) {
	var named [maxSessions + 1]bool
	for i := range s.late {
		if !m.matters(s, &s.late[i]) {
			s.late[i] = call{}
		}
	}
	if s.late[0].kind == noCall || s.late[1].kind != noCall && less(&s.late[1], &s.late[0]) {
		s.late[0], s.late[1] = s.late[1], s.late[0]
	}
	for i := range m.places {
		p := &s.sessions[i]
		if p.life != running {
			*p = session{life: p.life, row: p.row, name: p.name, still: p.still}
		}
		m.forgetTimes(s, i)
	}
	for l := range m.Leases {
		// A session that has ended acknowledges nothing, and no lease is valid for it.
		if w := &s.leases[l]; w.revoked != nobody && s.sessions[w.revoked-1].row != alive && !m.againFirst(s, int(w.revoked)-1) {
			w.revoked = nobody
		}
		if w := &s.leases[l]; w.revoked == nobody {
			w.noted, w.told = false, 0
		}
	}
	for i := range s.late {
		named[s.late[i].to], named[s.late[i].from] = true, true
	}
	for l := range m.Leases {
		w := &s.leases[l]
		named[w.owner], named[w.heir], named[w.revoked] = true, true, true
	}
	for i := range m.places {
		p := &s.sessions[i]
		if p.life == running || p.row != absent || named[ref(i)] {
			continue
		}
		*p = session{}
		if s.leader == ref(i) {
			s.leader = nobody
		}
	}
	if s.leader != nobody && s.leads() == nobody && !m.againFirst(s, int(s.leader)-1) {
		s.leader = nobody
	}
	m.restart(s)
}

// less orders late calls, so that their places distinguish fewer states.
func less(a, b *call) bool {
	key := func(c *call) uint64 {
		k := uint64(c.kind)<<16 | uint64(c.from)<<12 | uint64(c.to)<<8 | uint64(c.lease)<<4 | uint64(bit(c.first))<<1 | uint64(bit(c.moved))
		for _, r := range c.release {
			k = k<<3 | uint64(r)
		}
		return k
	}
	return key(a) < key(b)
}

// forgetTimes clears ages that have no effect.
func (m *Model) forgetTimes(s *state, i int) {
	p := &s.sessions[i]
	if p.answer == 0 {
		p.held = [maxLeases]uint8{}
	}
	reads := false
	for l := range m.Leases {
		if p.terms[l].hold == nothing {
			p.terms[l].back = 0
		}
		reads = reads || p.terms[l].hold == reading
	}
	if !reads || p.age > m.Validity+1 {
		p.age = 0
	}
	if p.row != alive {
		p.still = 0
	}
	for j := range m.places {
		if s.sessions[j].row != alive || i == j {
			p.seen[j] = 0
		}
	}
}

// againFirst reports whether a row of the session may still be created, again or for the first
// time.
func (m *Model) againFirst(s *state, i int) bool {
	if p := &s.sessions[i]; p.life == running && p.first {
		return true
	}
	for j := range s.late {
		if c := &s.late[j]; c.kind == callBeat && c.first && c.from == ref(i) {
			return true
		}
	}
	return false
}

// matters reports whether a call can still have an effect.
func (m *Model) matters(s *state, c *call) bool {
	switch c.kind {
	case callEndSession:
		return s.sessions[c.to-1].row == alive && (!c.moved || m.Bug == EndOfAnyCount)
	case callForget:
		return s.sessions[c.to-1].row != absent || m.againFirst(s, int(c.to)-1)
	case callAssign, callHandoff, callRevoke:
		return !c.stale || m.Bug == AssignmentAtAnyEpoch
	case callLead:
		return !c.stale
	case callBeat:
		row := s.sessions[c.from-1].row
		return row == alive || c.first
	default:
		return true
	}
}
