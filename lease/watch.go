package lease

import (
	"time"
)

// Watch derives [Facts] from a leader's successive views. It only counts time in which nothing
// changed and consecutive reads of the leader succeeded. It uses the times in its arguments and
// reads no clock.
//
// The zero Watch is not usable. A new leader makes a new Watch with [Follow.Watch]. That Watch
// keeps the observations about heartbeat counts. All other observations start with its own first
// view. A Watch is not safe for concurrent use.
type Watch struct {
	times     Times
	beats     stillness
	revoked   map[Key]*still[revocation]
	wishes    map[Key]*still[wish]
	outOfDate map[string]*still[disagreement]
	ended     map[string]*still[struct{}] // how long sessions have been over
	suspect   Leader
	sums      map[string]uint64 // fingerprints of the leases in the last view, by owner
	loads     map[Key]Load      // without noise, of leases with a load
	epochs    map[Key]uint64    // of the leases in the last view; nil before the first view
	began     time.Time         // the time of the first view
	moves     []movement        // recent movements, the oldest first
	cooling   map[Key]uint64    // the epochs after those movements
}

type revocation struct {
	epoch   uint64
	session string
}

type wish struct {
	epoch uint64
	heir  string
}

type disagreement struct{ holds, leases uint64 }

// NewWatch returns a new watch. suspect is the previous leader if it was replaced because its
// heartbeat had not changed for the failover time. The session of suspect counts as dead as long as
// its heartbeat count stays the same. If no leader was replaced in this way, suspect is the zero
// Leader.
func NewWatch(times Times, suspect Leader) *Watch {
	return &Watch{
		times: times, suspect: suspect,
		beats: newStillness(), revoked: map[Key]*still[revocation]{},
		wishes: map[Key]*still[wish]{}, outOfDate: map[string]*still[disagreement]{}, ended: map[string]*still[struct{}]{},
	}
}

// forgetAfter is the number of failover times after which the row of an ended session is removed.
// weir assumes that every call reaches the store within that time after the client sent it. A
// client aborts its calls after half a failover time, but requests may be delayed for longer.
const forgetAfter = 10

// Missed notes that a view failed. The time around it does not count for any session.
func (w *Watch) Missed() { w.beats.missed() }

// See evaluates a view that was requested at began and arrived at ended, and returns the resulting
// facts. v.Leases must be filled in, even if the store set Same. The caller sets Facts.Gone and
// Facts.Streams.
func (w *Watch) See(v View, began, ended time.Time) Facts {
	step := w.beats.step(began, ended, w.times.Heartbeat)

	var f Facts // its maps are allocated on demand, because most views yield no facts
	if !v.Same || w.sums == nil {
		w.sums = make(map[string]uint64, len(w.sums))
		for i := range v.Leases {
			if l := &v.Leases[i]; l.Owner != "" {
				w.sums[l.Owner] += l.fingerprint()
			}
		}
	}
	w.seeLoads(v, ended, &f)
	w.seeSessions(v, step, &f)
	w.seeLeases(v, step, &f)
	return f
}

func (w *Watch) seeSessions(v View, step time.Duration, f *Facts) {
	living := 0
	for i := range v.Workers {
		worker := &v.Workers[i]
		if worker.Ended {
			if track(w.ended, worker.Session, struct{}{}, step).time >= forgetAfter*w.times.Failover {
				put(&f.Forgettable, worker.Session, true)
			}
			continue
		}
		living++
		stood := w.beats.see(worker.Session, worker.Heartbeats, step)
		if stood >= w.times.Failover || (worker.Session == w.suspect.Session && worker.Heartbeats == w.suspect.Heartbeats) {
			put(&f.Dead, worker.Session, worker.Heartbeats)
		}

		// A worker reacts to new orders with its next heartbeat. If a difference lasts for several
		// heartbeats of a live worker, a notification was lost.
		sum := w.sums[worker.Session]
		if sum == worker.Holds {
			delete(w.outOfDate, worker.Session)
			continue
		}
		known := w.outOfDate[worker.Session]
		if known == nil || known.value != (disagreement{worker.Holds, sum}) {
			w.outOfDate[worker.Session] = &still[disagreement]{value: disagreement{worker.Holds, sum}, seen: worker.Heartbeats}
			continue
		}
		if worker.Heartbeats >= known.seen+4 {
			put(&f.OutOfDate, worker.Session, true)
			known.seen = worker.Heartbeats
		}
	}
	if len(w.beats.sessions) == living && len(w.outOfDate) == 0 && len(w.ended) == len(v.Workers)-living {
		return // the usual case: no session has disappeared
	}
	here, over := make(map[string]bool, living), map[string]bool{}
	for i := range v.Workers {
		if worker := &v.Workers[i]; worker.Ended {
			over[worker.Session] = true
		} else {
			here[worker.Session] = true
		}
	}
	prune(w.beats.sessions, here)
	prune(w.outOfDate, here)
	prune(w.ended, over)
}

func (w *Watch) seeLeases(v View, step time.Duration, f *Facts) {
	var revoked, wished map[Key]bool
	for i := range v.Leases {
		l := &v.Leases[i]
		// No lease is valid for a session that is over. There is nothing to wait for, and no
		// session to notify.
		if l.Revoked != "" && w.beats.sessions[l.Revoked] != nil {
			put(&revoked, l.Key, true)
			r := track(w.revoked, l.Key, revocation{l.Epoch, l.Revoked}, step)
			switch {
			case !r.told:
				// The leader that revoked the lease may have died before the old owner could learn
				// of the revocation. Notify the old owner's session (again), and only then begin to
				// wait.
				r.time = 0
				put(&f.OutOfDate, l.Revoked, true)
			case r.time >= w.times.Failover:
				put(&f.Ripe, l.Key, l.Epoch)
			}
		}
		if l.Heir != "" {
			put(&wished, l.Key, true)
			if track(w.wishes, l.Key, wish{l.Epoch, l.Heir}, step).time >= w.times.Handoff {
				put(&f.Overdue, l.Key, l.Epoch)
			}
		}
	}
	prune(w.revoked, revoked)
	prune(w.wishes, wished)
}

// Told notes that an Apply with a [Tell] for session returned without an error at now. The
// session's heartbeats that begin after now return all revocations that this leader has seen. The
// wait for a revocation therefore starts at now. The time since the last view does not count.
func (w *Watch) Told(session string, now time.Time) {
	for _, r := range w.revoked {
		if r.value.session == session && !r.told {
			r.told, r.time = true, 0
			w.beats.last = now
		}
	}
}

// Next returns how long to wait after the last view until the next one. It returns the time until a
// session counts as dead or a revocation is ripe if nothing changes, but at most bound.
func (w *Watch) Next(bound time.Duration) time.Duration {
	bound = w.beats.next(w.times.Failover, bound)
	for _, r := range w.revoked {
		if r.told {
			bound = min(bound, max(w.times.Failover-r.time, 0))
		}
	}
	return bound
}

// put sets an element of a map. It allocates the map if it is nil.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}

func prune[K comparable, V any](m map[K]V, keep map[K]bool) {
	for k := range m {
		if !keep[k] {
			delete(m, k)
		}
	}
}
