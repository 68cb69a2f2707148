package protocol

// stepKind is a kind of step.
type stepKind uint8

const (
	stepBeat stepKind = iota
	stepBeatOver
	stepBeatLost
	stepBeatLate
	stepBeatTwice
	stepAnswer
	stepGiveUp
	stepCrash
	stepLeave
	stepLeaveLate
	stepTell
	stepCall
	stepCallUnanswered
	stepCallLate
	stepArrives
	stepTick
	stepTickSlow
	stepFast
)

// fault reports whether a fault-free continuation must not contain the step.
func (k stepKind) fault() bool {
	switch k {
	case stepBeatLost, stepBeatLate, stepBeatTwice, stepCrash, stepLeave, stepLeaveLate, stepCallUnanswered, stepCallLate, stepTickSlow, stepFast:
		return true
	default:
		return false
	}
}

// step is a possible step of a state. The places that it names are places in the state before the
// step.
type step struct {
	kind    stepKind
	who     uint8
	lease   uint8
	resigns bool
	call    call
}

// unlimited is a number of faults that is never used up.
const unlimited = 15

func use(left *uint8) {
	if *left != unlimited {
		*left--
	}
}

// steps calls yield with every possible next state. These states are settled, but not in canonical
// order yet.
func (m *Model) steps(s *state, yield func(step, *state)) {
	emit := func(st step, t *state) {
		m.settle(t)
		yield(st, t)
	}
	for i := range m.places {
		if p := &s.sessions[i]; p.life == running {
			m.workerSteps(s, i, emit)
			if s.leads() == ref(i) && !p.first {
				m.leaderSteps(s, i, emit)
			}
			m.campaignStep(s, i, emit)
		}
	}
	for i := range s.late {
		if c := s.late[i]; c.kind != noCall {
			t := *s
			t.late[i] = call{}
			m.arrive(&t, c)
			emit(step{kind: stepArrives, call: c}, &t)
		}
	}
	m.timeSteps(s, emit)
}

// arrive carries out a call whose sender no longer waits.
func (m *Model) arrive(s *state, c call) {
	switch c.kind {
	case callBeat:
		m.beat(s, int(c.from)-1, &c)
	case callLeave:
		m.leave(s, int(c.from)-1, &c)
	default:
		m.apply(s, c)
	}
}

// late returns a heartbeat or leave as a late call. It omits checkpoints. A checkpoint of the
// current epoch is harmless, and one of an older epoch may also come from the process itself.
func (c call) late() call {
	c.save = [maxLeases]uint8{}
	return c
}

// report returns the content of a process's next heartbeat.
func (m *Model) report(s *state, i int) call {
	p := &s.sessions[i]
	b := call{kind: callBeat, from: ref(i), first: p.first}
	for l := range m.Leases {
		t := p.terms[l]
		if t.hold == reading {
			b.save[l] = 1 + t.back
		}
		if t.hold == givingUp || t.hold == reading && m.Bug == ReleaseWhileReading && s.leases[l].heir != nobody {
			b.release[l] = 1 + t.back
		}
	}
	return b
}

func (m *Model) workerSteps(s *state, i int, emit func(step, *state)) {
	p := &s.sessions[i]
	who := uint8(i)
	if s.left.Crashes > 0 {
		t := *s
		use(&t.left.Crashes)
		t.sessions[i].life = over
		emit(step{kind: stepCrash, who: who}, &t)
	}
	if p.answer != 0 {
		t := *s
		m.take(&t, i)
		emit(step{kind: stepAnswer, who: who}, &t)
		return // one heartbeat at a time
	}
	for l := range m.Leases {
		if p.terms[l].hold == reading {
			t := *s
			t.sessions[i].terms[l].hold = givingUp
			emit(step{kind: stepGiveUp, who: who, lease: uint8(l)}, &t)
		}
	}
	b := m.report(s, i)
	m.beatSteps(s, i, b, emit)
	if s.left.Resigns > 0 && (s.leader == ref(i) || m.Bug == ResignationOfAnybody) && !p.first {
		t := *s
		use(&t.left.Resigns)
		b.resigns = true
		m.beatSteps(&t, i, b, emit)
	}
	m.leaveSteps(s, i, emit)
}

func (m *Model) beatSteps(s *state, i int, b call, emit func(step, *state)) {
	who := uint8(i)
	base := *s
	// A late heartbeat without content changes the count, like one whose answer is lost.
	late := s.left.Late > 0 && (b.first || b.resigns || b.release != [maxLeases]uint8{})
	t := base
	if !m.beat(&t, i, &b) {
		t.sessions[i].life = over
		emit(step{kind: stepBeatOver, who: who}, &t)
	} else {
		m.watch(&t, i)
		lost, answered := t, t
		m.orders(&answered, i)
		emit(step{kind: stepBeat, who: who, resigns: b.resigns, call: b}, &answered)
		if s.left.Lost > 0 {
			use(&lost.left.Lost)
			emit(step{kind: stepBeatLost, who: who, resigns: b.resigns, call: b}, &lost)
		}
		if t := base; late && m.queue(&t, b.late()) { // before the heartbeat itself changes its epochs
			use(&t.left.Late)
			m.beat(&t, i, &b)
			m.watch(&t, i)
			m.orders(&t, i)
			emit(step{kind: stepBeatTwice, who: who, resigns: b.resigns, call: b}, &t)
		}
	}
	if t := base; late && m.queue(&t, b.late()) {
		use(&t.left.Late)
		emit(step{kind: stepBeatLate, who: who, resigns: b.resigns, call: b}, &t)
	}
}

// queue adds a late call, if there is room.
func (m *Model) queue(s *state, c call) bool {
	for i := range s.late {
		if s.late[i].kind == noCall {
			s.late[i] = c
			return true
		}
	}
	return false
}

// orders begins the answer to a heartbeat that was just carried out.
func (m *Model) orders(s *state, i int) {
	p := &s.sessions[i]
	p.answer = 1
	for l := range m.Leases {
		switch w := &s.leases[l]; {
		case w.owner == ref(i):
			p.held[l] = 1
		case w.revoked == ref(i) && !w.noted && p.terms[l].hold != nothing && p.terms[l].back == 1:
			// The revocation is not noted yet, so the orders are those of the previous heartbeat.
			p.held[l] = 2
		default:
			p.held[l] = 0
		}
	}
}

// watch begins to watch every count that the process does not watch yet. The code begins at the end
// of the read, and not at all if the answer is lost. The model never begins later than the code.
func (m *Model) watch(s *state, i int) {
	for j := range m.places {
		if m.OwnWatch && j != i && s.sessions[j].row == alive && s.sessions[i].seen[j] == 0 {
			s.sessions[i].seen[j] = 1
		}
	}
}

// take processes an answer like worker.take, settle and startTerms, and Term.settle.
func (m *Model) take(s *state, i int) {
	p := &s.sessions[i]
	for l := range m.Leases {
		t := &p.terms[l]
		same := p.held[l] == 1+t.back // the epoch of the term
		switch {
		case t.hold == reading && !same:
			t.hold = givingUp // lost; the next heartbeat acknowledges it
		case t.hold == givingUp && !same:
			t.hold = nothing // the heartbeat returned it
		}
		if t.hold == nothing && p.held[l] != 0 {
			*t = term{reading, p.held[l] - 1}
		}
	}
	p.age = p.answer
	if m.Bug == ValidityFromTheAnswer {
		p.age = 1
	}
	p.first, p.answer = false, 0
}

func (m *Model) leaveSteps(s *state, i int, emit func(step, *state)) {
	p := &s.sessions[i]
	if s.left.Leaves == 0 || p.first {
		return
	}
	for l := range m.Leases {
		if p.terms[l].hold == reading {
			return
		}
	}
	b := m.report(s, i)
	b.kind = callLeave
	base := *s
	use(&base.left.Leaves)
	base.sessions[i].life = over
	t := base
	m.leave(&t, i, &b)
	emit(step{kind: stepLeave, who: uint8(i)}, &t)
	if t := base; s.left.Late > 0 && m.queue(&t, b.late()) {
		use(&t.left.Late)
		emit(step{kind: stepLeaveLate, who: uint8(i)}, &t)
	}
}

// stoodStill reports whether a process may end a session because its heartbeat count has not
// changed for the failover time.
func (m *Model) stoodStill(s *state, i, j int) bool {
	if m.OwnWatch {
		return s.sessions[i].seen[j] > m.Failover
	}
	return s.sessions[j].still > m.Failover
}

// leaderSteps yields the possible decisions of a leader after a view: the proofs of lease.Watch and
// the results of lease.Plan, without shares and preferences.
func (m *Model) leaderSteps(s *state, i int, emit func(step, *state)) {
	for j := range m.places {
		switch q := &s.sessions[j]; {
		case q.row == alive && m.stoodStill(s, i, j):
			m.send(s, i, call{kind: callEndSession, to: ref(j)}, emit)
		case q.row == ended && !m.named(s, j) && (!m.underWay(s, j) || m.Bug == ForgetsEarly):
			m.send(s, i, call{kind: callForget, to: ref(j)}, emit)
		}
	}
	for l := range m.Leases {
		m.leaseSteps(s, i, l, emit)
	}
}

func (m *Model) leaseSteps(s *state, i, l int, emit func(step, *state)) {
	w := &s.leases[l]
	at := uint8(l)
	if w.revoked != nobody && w.told == 0 && s.sessions[w.revoked-1].row == alive {
		t := *s
		if m.Bug != WaitWithoutTelling {
			t.leases[l].noted = true
		}
		t.leases[l].told = 1
		emit(step{kind: stepTell, who: uint8(i), lease: at}, &t)
	}
	if w.heir != nobody {
		m.send(s, i, call{kind: callHandoff, lease: at, to: nobody}, emit)
	}
	held := w.owner != nobody && s.sessions[w.owner-1].row == alive
	mayGo := !held && m.revocationIsOver(s, w)
	for j := range m.places {
		if s.sessions[j].row != alive {
			continue
		}
		if mayGo {
			m.send(s, i, call{kind: callAssign, lease: at, to: ref(j)}, emit)
		}
		if held && w.owner != ref(j) && w.heir != ref(j) && s.left.Handoffs > 0 {
			t := *s
			use(&t.left.Handoffs)
			m.send(&t, i, call{kind: callHandoff, lease: at, to: ref(j)}, emit)
		}
	}
	if held && s.left.Revokes > 0 {
		t := *s
		use(&t.left.Revokes)
		m.send(&t, i, call{kind: callRevoke, lease: at}, emit)
	}
}

// named reports whether a lease names the session as its owner or heir.
func (m *Model) named(s *state, j int) bool {
	for l := range m.Leases {
		if s.leases[l].owner == ref(j) || s.leases[l].heir == ref(j) {
			return true
		}
	}
	return false
}

// revocationIsOver reports whether a leader may assume that a lease is no longer valid for its old
// owner. The revocation must be acknowledged, or the old owner's session must be over, or the
// failover time must have passed since the old owner was notified.
func (m *Model) revocationIsOver(s *state, w *row) bool {
	return w.revoked == nobody || s.sessions[w.revoked-1].row != alive || w.told > m.Failover || m.Bug == AssignmentOfRevoked
}

// campaignStep corresponds to followLeader. A worker campaigns if there is no leader, or if it
// believes that the leader's count has not changed for the failover time. It may read outdated
// counts, and Lead depends only on the term. So in the model any worker may take over at any time.
func (m *Model) campaignStep(s *state, i int, emit func(step, *state)) {
	l := s.leads()
	if s.sessions[i].first || l == ref(i) || l != nobody && m.Bug == NobodyTakesOver {
		return
	}
	m.send(s, i, call{kind: callLead, to: ref(i)}, emit)
}

// send sends an Apply or Lead that was decided on the state of the store. Either it reaches the
// store before anything else does, or it hangs and arrives after its sender has abandoned it.
func (m *Model) send(s *state, i int, c call, emit func(step, *state)) {
	who := uint8(i)
	t := *s
	m.apply(&t, c)
	if c.kind == callRevoke {
		unanswered := t
		t.leases[c.lease].noted = true
		if s.left.Lost > 0 {
			use(&unanswered.left.Lost)
			emit(step{kind: stepCallUnanswered, who: who, call: c}, &unanswered)
		}
	}
	emit(step{kind: stepCall, who: who, call: c}, &t)
	if t := *s; s.left.Late > 0 && m.queue(&t, c) {
		use(&t.left.Late)
		emit(step{kind: stepCallLate, who: who, call: c}, &t)
	}
}

// timeSteps advances the clocks by a tick. A heartbeat is answered, or has failed, before its
// answer would be too old.
func (m *Model) timeSteps(s *state, emit func(step, *state)) {
	none := true
	for i := range m.places {
		if p := &s.sessions[i]; p.life == running && p.answer > m.Validity {
			none = false
		}
	}
	for i := range m.places {
		if s.left.Drift == 0 || s.sessions[i].life != running {
			continue
		}
		if none {
			t := *s
			use(&t.left.Drift)
			m.tick(&t, i)
			emit(step{kind: stepTickSlow, who: uint8(i)}, &t)
		}
	}
	if s.left.Drift > 0 {
		t := *s
		use(&t.left.Drift)
		m.ageWatches(&t)
		emit(step{kind: stepFast}, &t)
	}
	if none {
		t := *s
		m.tick(&t, -1)
		emit(step{kind: stepTick}, &t)
	}
}

// tick advances the clocks of all processes except one, and all watches. but is the index of that
// process, or -1.
func (m *Model) tick(s *state, but int) {
	for i := range m.places {
		if p := &s.sessions[i]; i != but && p.life == running {
			up(&p.age, m.Validity+2)
			up(&p.answer, m.Validity+2)
		}
	}
	m.ageWatches(s)
}

// ageWatches advances all watches by a tick: those of heartbeat counts and those of revocations.
func (m *Model) ageWatches(s *state) {
	for i := range m.places {
		p := &s.sessions[i]
		up(&p.still, m.Failover+1)
		for j := range m.places {
			up(&p.seen[j], m.Failover+1)
		}
	}
	for l := range m.Leases {
		up(&s.leases[l].told, m.Failover+1)
	}
}

func up(age *uint8, most uint8) {
	if *age != 0 {
		*age = min(*age+1, most)
	}
}
