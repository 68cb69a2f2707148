package protocol

import (
	"fmt"
	"strings"
)

// trace repeats the steps to the last of the states, and describes each in a line.
func (m *Model) trace(origins []origin) []string {
	var way []uint16
	for n := len(origins) - 1; n > 0; n = int(origins[n].from) {
		way = append(way, origins[n].nth)
	}
	s := m.initial()
	m.canonical(&s)
	lines := []string{fmt.Sprintf("%3d  %-62s %s", 0, "the beginning", m.describe(&s))}
	for i := len(way) - 1; i >= 0; i-- {
		nth, next, what := uint16(0), state{}, ""
		m.steps(&s, func(st step, t *state) {
			if nth == way[i] {
				next, what = *t, m.tell(&s, st)
				m.canonical(&next)
			}
			nth++
		})
		s = next
		lines = append(lines, fmt.Sprintf("%3d  %-62s %s", len(way)-i, what, m.describe(&s)))
	}
	return lines
}

// nameOf returns the name of a session in traces, which is the number of its start.
func (s *state) nameOf(ref uint8) string {
	if ref == nobody {
		return "-"
	}
	return fmt.Sprintf("s%d", s.sessions[ref-1].name)
}

// tell describes a step.
func (m *Model) tell(s *state, st step) string {
	who := s.nameOf(st.who + 1)
	says := ""
	for l, back := range st.call.release {
		if l < m.Leases && back != 0 {
			says += fmt.Sprintf(" (gives back L%d at epoch %d)", s.leases[l].name, s.leases[l].epoch+1-back)
		}
	}
	if st.resigns || st.call.resigns {
		says += " (resigns)"
	}
	switch st.kind {
	case stepBeat:
		return who + " heartbeats, the answer is under way" + says
	case stepBeatOver:
		return who + " heartbeats and hears that the session is over"
	case stepBeatLost:
		return who + " heartbeats, the answer is LOST" + says
	case stepBeatLate:
		return who + " heartbeats, the request hangs (LATE)" + says
	case stepBeatTwice:
		return who + " heartbeats, a copy of the request hangs (LATE)" + says
	case stepAnswer:
		return who + " takes the answer in"
	case stepGiveUp:
		return fmt.Sprintf("%s has drained L%d", who, s.leases[st.lease].name)
	case stepCrash:
		return who + " CRASHES"
	case stepLeave:
		return who + " leaves"
	case stepLeaveLate:
		return who + " leaves, the request hangs (LATE)"
	case stepTell:
		return fmt.Sprintf("%s tells %s about L%d", who, s.nameOf(s.leases[st.lease].revoked), s.leases[st.lease].name)
	case stepCall:
		return who + " applies: " + m.tellCall(s, &st.call)
	case stepCallUnanswered:
		return who + " applies, the answer is LOST: " + m.tellCall(s, &st.call)
	case stepCallLate:
		return who + " applies, the request hangs (LATE): " + m.tellCall(s, &st.call)
	case stepArrives:
		if st.call.kind == callBeat {
			return "late arrives a heartbeat of " + s.nameOf(st.call.from) + says
		}
		return "late, it is applied: " + m.tellCall(s, &st.call)
	case stepTick:
		return "a tick"
	case stepTickSlow:
		return "a tick, but not for " + who + " (DRIFT)"
	case stepFast:
		return "a tick for those who watch alone (DRIFT)"
	}
	return "?"
}

func (m *Model) tellCall(s *state, c *call) string {
	l := ""
	if c.onLease() {
		l = fmt.Sprintf(" L%d", s.leases[c.lease].name)
	}
	switch c.kind {
	case callLead:
		return "lead " + s.nameOf(c.to)
	case callLeave:
		return "leave " + s.nameOf(c.from)
	case callHandoff:
		if c.to == nobody {
			return "withdraw the wish for" + l
		}
	}
	return strings.TrimSuffix(fmt.Sprintf("%s%s to %s", kindOf[c.kind], l, s.nameOf(c.to)), " to -")
}

// describe describes a state in a line: the store, and then the view of each process.
func (m *Model) describe(s *state) string {
	var b strings.Builder
	for l := range m.Leases {
		w := &s.leases[l]
		fmt.Fprintf(&b, "L%d@%d owner=%s", w.name, w.epoch, s.nameOf(w.owner))
		if w.heir != nobody {
			fmt.Fprintf(&b, " heir=%s", s.nameOf(w.heir))
		}
		if w.revoked != nobody {
			fmt.Fprintf(&b, " revoked=%s", s.nameOf(w.revoked))
		}
		b.WriteString(" ")
	}
	fmt.Fprintf(&b, "leader=%s |", s.nameOf(s.leads()))
	for i := range m.places {
		p := &s.sessions[i]
		if p.name == 0 {
			continue
		}
		fmt.Fprintf(&b, " s%d:", p.name)
		b.WriteString([...]string{"no row", "row", "ended"}[p.row])
		if p.life != running {
			b.WriteString(",gone")
			continue
		}
		for l := range m.Leases {
			t := p.terms[l]
			epoch := s.leases[l].epoch - t.back
			switch {
			case m.holdsValid(p, l):
				fmt.Fprintf(&b, ",VALID L%d@%d age %d", s.leases[l].name, epoch, p.age-1)
			case t.hold == reading:
				fmt.Fprintf(&b, ",not valid L%d@%d", s.leases[l].name, epoch)
			case t.hold == givingUp:
				fmt.Fprintf(&b, ",gives back L%d@%d", s.leases[l].name, epoch)
			}
		}
		if p.still > 1 {
			fmt.Fprintf(&b, ",still for %d", p.still-1)
		}
		for j, age := range p.seen[:m.places] {
			if age > 0 {
				fmt.Fprintf(&b, ",s%d still %d", s.sessions[j].name, age-1)
			}
		}
	}
	return b.String()
}
