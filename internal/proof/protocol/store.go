package protocol

// This file contains the model's store: the part of store/memstore that the protocol needs.
// TestModelAgreesWithMemstore makes the same calls on both stores.

// beat corresponds to Store.Heartbeat. It reports whether the session is alive.
func (m *Model) beat(s *state, i int, b *call) bool {
	p := &s.sessions[i]
	switch {
	case p.row == absent && b.first:
		p.row = alive
		m.countMoved(s, i)
	case p.row != alive:
		return false
	default:
		m.countMoved(s, i)
	}
	if b.resigns && (s.leader == ref(i) || m.Bug == ResignationOfAnybody) {
		// The leader's epoch stays the same, so a late call of Lead may still have the current
		// epoch.
		m.setLeader(s, nobody)
	}
	for l := range m.Leases {
		m.save(s, i, l, b.save[l])
		m.progress(s, i, l, b.release[l])
	}
	return true
}

// save corresponds to Progress with a Position, for one lease. The argument save is 0, or 1 + the
// distance of the epoch.
func (m *Model) save(s *state, i, l int, save uint8) (accepted bool) {
	accepted = save != 0 && s.leases[l].owner == ref(i) && (save == 1 || m.Bug == CheckpointAtAnyEpoch)
	s.spoiled = s.spoiled || accepted && save > 1
	return accepted
}

// progress corresponds to Progress with Release, for one lease. release is 0, or 1 + the distance
// of the epoch.
func (m *Model) progress(s *state, i, l int, release uint8) {
	w := &s.leases[l]
	switch {
	case release == 0:
	case w.owner == ref(i) && (release == 1 || m.Bug == ReleaseAtAnyEpoch):
		m.own(s, l, w.heir)
	case w.revoked == ref(i) && (release == 2 || m.Bug == AcknowledgementAtAnyEpoch):
		w.revoked, w.noted = nobody, false
	}
}

// own makes a session the owner of a lease and increases the epoch. If to is nobody, the lease gets
// no owner.
func (m *Model) own(s *state, l int, to uint8) {
	w := &s.leases[l]
	w.owner, w.heir = to, nobody
	w.epoch++
	for i := range m.places {
		p := &s.sessions[i]
		p.terms[l].back = min(p.terms[l].back+1, oldest)
		if p.held[l] != 0 {
			p.held[l] = min(p.held[l]+1, 1+oldest)
		}
	}
	w.told = 0
	for i := range s.late {
		m.epochMoved(&s.late[i], l)
	}
}

func (m *Model) epochMoved(c *call, l int) {
	if c.onLease() && int(c.lease) == l {
		c.stale = true
	}
	if c.release[l] != 0 {
		c.release[l] = min(c.release[l]+1, 1+oldest)
	}
}

// countMoved updates the observers of a heartbeat count that has changed.
func (m *Model) countMoved(s *state, i int) {
	if m.Bug != WatchOutlivesTheCount {
		for j := range m.places {
			s.sessions[j].seen[i] = 0
		}
		s.sessions[i].still = 0
	}
	if !m.OwnWatch && s.sessions[i].row == alive && s.sessions[i].still == 0 {
		s.sessions[i].still = 1
	}
	for j := range s.late {
		if c := &s.late[j]; c.kind == callEndSession && c.to == ref(i) {
			c.moved = true
		}
	}
}

// apply corresponds to Store.Apply with one action, or to Store.Lead. It reports whether the call
// took effect.
func (m *Model) apply(s *state, c call) bool {
	to := int(c.to) - 1
	switch c.kind {
	case callEndSession:
		p := &s.sessions[to]
		if p.row == absent || c.moved && m.Bug != EndOfAnyCount {
			return false
		}
		p.row = ended
	case callForget:
		p := &s.sessions[to]
		if p.row != ended {
			return false
		}
		m.remove(s, to)
	case callLead:
		if c.stale {
			return false
		}
		m.lead(s, c.to)
	case callAssign, callHandoff, callRevoke:
		return m.applyToLease(s, c)
	}
	return true
}

func (m *Model) applyToLease(s *state, c call) bool {
	w, l := &s.leases[c.lease], int(c.lease)
	if c.stale && m.Bug != AssignmentAtAnyEpoch {
		return false
	}
	switch c.kind {
	case callAssign:
		w.revoked, w.noted = nobody, false
		m.own(s, l, c.to)
	case callHandoff:
		if w.owner == nobody || w.owner == c.to {
			return false
		}
		w.heir = c.to
	case callRevoke:
		if w.owner == nobody {
			return false
		}
		w.revoked, w.noted = w.owner, false
		m.own(s, l, nobody)
	}
	return true
}

// remove removes the row of a session.
func (m *Model) remove(s *state, i int) {
	s.sessions[i].row = absent
	m.countMoved(s, i)
	for j := range m.places {
		s.sessions[j].seen[i] = 0
	}
	s.sessions[i].still = 0
}

// lead corresponds to Store.Lead with the current epoch of the leader.
func (m *Model) lead(s *state, to uint8) {
	m.setLeader(s, to)
	for i := range s.late {
		if c := &s.late[i]; c.kind == callLead {
			c.stale = true
		}
	}
}

// setLeader replaces the leader. to may be nobody.
func (m *Model) setLeader(s *state, to uint8) {
	s.leader = to
	for l := range m.Leases {
		// A new leader has a new watch of revocations. It keeps its watch of heartbeat counts.
		s.leases[l].told = 0
	}
}

// leave corresponds to Store.Leave.
func (m *Model) leave(s *state, i int, b *call) {
	if s.sessions[i].row == alive {
		for l := range m.Leases {
			m.progress(s, i, l, b.release[l])
		}
	}
	for l := range m.Leases {
		w := &s.leases[l]
		if w.owner == ref(i) {
			m.own(s, l, w.heir)
		}
		if w.revoked == ref(i) {
			w.revoked, w.noted = nobody, false
		}
	}
	if s.leader == ref(i) {
		m.lead(s, nobody)
	}
	m.remove(s, i)
}

// leads returns the stored leader. It returns nobody if that session is not alive.
func (s *state) leads() uint8 {
	if s.leader == nobody || s.sessions[s.leader-1].row != alive {
		return nobody
	}
	return s.leader
}

func ref(i int) uint8 { return uint8(i + 1) }
