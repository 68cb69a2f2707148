package lease

import (
	"time"
)

// Watch turns a leader's successive views into [Facts]. It only counts time in which nothing moved
// while the leader's own reads succeeded, one after the other, on the clock of its arguments; it
// reads no clock itself. The zero Watch is not usable; a new leader makes a new one
// ([Follow.Watch]). It brings along how long beat counts have stood still; everything else that it
// waits for starts with its own first view. Not for concurrent use.
type Watch struct {
	times     Times
	beats     stillness
	revoked   map[Key]*still[revocation]
	wishes    map[Key]*still[wish]
	outOfDate map[string]*still[disagreement]
	ended     map[string]*still[struct{}] // since when sessions are over
	suspect   Leader
	sums      map[string]uint64 // fingerprints by owner, of the leases last seen
	loads     map[Key]Load      // without noise, of those that brought any
	epochs    map[Key]uint64    // of the leases last seen, nil before the first view
	began     time.Time         // the first of them
	moves     []movement        // lately, the oldest first
	cooling   map[Key]uint64    // the epochs after them
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

// NewWatch makes a watch. suspect is the leader that was taken over from because its beat stood
// still for the failover time: it counts as dead as long as its beat is still that one. Give the
// zero Leader otherwise.
func NewWatch(times Times, suspect Leader) *Watch {
	return &Watch{
		times: times, suspect: suspect,
		beats: newStillness(), revoked: map[Key]*still[revocation]{},
		wishes: map[Key]*still[wish]{}, outOfDate: map[string]*still[disagreement]{}, ended: map[string]*still[struct{}]{},
	}
}

// forgetAfter is how many failover times a session has to have been over before its row goes. It is
// assumed that no call reaches the store later than that after it was sent: a client's calls end
// after half a failover time, but what they sent may be on its way for longer.
const forgetAfter = 10

// Missed notes that a view failed. The time around it proves nothing about anybody.
func (w *Watch) Missed() { w.beats.missed() }

// See takes in a view that was asked for at began and had arrived at ended, and says what it
// proves. Leases must be filled in, also when the store said Same; that is relied on. Facts.Gone is
// left to the caller, who lists the streams.
func (w *Watch) See(v View, began, ended time.Time) Facts {
	step := w.beats.step(began, ended, w.times.Beat)

	var f Facts // whose maps are made for what is in them: most looks find nothing
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
		stood := w.beats.see(worker.Session, worker.Beat, step)
		if stood >= w.times.Failover || (worker.Session == w.suspect.Session && worker.Beat == w.suspect.Beat) {
			put(&f.Dead, worker.Session, worker.Beat)
		}

		// A worker answers to new orders with its next beat, so only a difference that outlives
		// several beats of a live worker means that a note got lost.
		sum := w.sums[worker.Session]
		if sum == worker.Holds {
			delete(w.outOfDate, worker.Session)
			continue
		}
		known := w.outOfDate[worker.Session]
		if known == nil || known.value != (disagreement{worker.Holds, sum}) {
			w.outOfDate[worker.Session] = &still[disagreement]{value: disagreement{worker.Holds, sum}, seen: worker.Beat}
			continue
		}
		if worker.Beat >= known.seen+4 {
			put(&f.OutOfDate, worker.Session, true)
			known.seen = worker.Beat
		}
	}
	if len(w.beats.sessions) == living && len(w.outOfDate) == 0 && len(w.ended) == len(v.Workers)-living {
		return // nearly always: nobody is remembered who is not there
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
		// A session that is over trusts nothing any more, so there is nothing to wait for, and
		// nobody to tell.
		if l.Revoked != "" && w.beats.sessions[l.Revoked] != nil {
			put(&revoked, l.Key, true)
			r := track(w.revoked, l.Key, revocation{l.Epoch, l.Revoked}, step)
			switch {
			case !r.told:
				// Whoever revoked it may have died before the old owner could learn of it: tell it
				// (again), and only then begin to wait.
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

// Told notes that an Apply with a [Tell] for session returned at now without an error: every beat
// that begins from here on shows the session what was revoked from it in the views seen so far.
// Waiting starts at now, so what passed since the last view counts for nobody.
func (w *Watch) Told(session string, now time.Time) {
	for _, r := range w.revoked {
		if r.value.session == session && !r.told {
			r.told, r.time = true, 0
			w.beats.last = now
		}
	}
}

// Next is how long nothing has to move from the last view on until one of the sessions counts as
// dead or a revocation is ripe, at most the given bound: the moment for the next look.
func (w *Watch) Next(bound time.Duration) time.Duration {
	bound = w.beats.next(w.times.Failover, bound)
	for _, r := range w.revoked {
		if r.told {
			bound = min(bound, max(w.times.Failover-r.time, 0))
		}
	}
	return bound
}

// put sets an element of a map, which it makes if there is none.
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
