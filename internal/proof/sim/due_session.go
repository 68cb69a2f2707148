package sim

import "github.com/weir-go/weir/lease"

// A worker also ends its session without ending its life: it does that if the store does not accept
// that it resigns. It drains its handlers first, and then begins another session. Meanwhile it gets
// no leases and cannot become the leader.

// ends reports whether a life or its session is ending, so that it takes on no duties.
func (l *life) ends() bool { return l.stopping || l.hindered.leaving != 0 }

// noteSession notes the session of a heartbeat that has taken effect.
func (w *world) noteSession(l *life, said *lease.Report) {
	h := &l.hindered
	if l.session == "" {
		h.begun = w.now()
	}
	if l.session != said.Session {
		if h.leaving != 0 { // see group.worker.startAgain
			h.begun, h.resigned, h.leaving, l.goodbye = w.now(), w.now()+int64(2*w.settings.failover), 0, false
		}
		l.session, w.books.of[said.Session] = said.Session, l
	}
	if said.Leaving && h.leaving == 0 {
		h.leaving = w.now()
	}
}

// restartsInTime checks that a life whose session is ending begins another one soon. A handler that
// ignores its context is abandoned after the handoff timeout.
func (w *world) restartsInTime(l *life) {
	if l.hindered.leaving == 0 || l.goodbye {
		return
	}
	s := w.settings
	since := max(l.hindered.leaving, l.fromStore(), w.outage)
	w.within(since, s.stop+s.handoff+s.failover+3*s.beat, "restart", func() string { return l.String() + " ends its session" })
}
