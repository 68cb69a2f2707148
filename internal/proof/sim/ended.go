package sim

import "time"

// stretch is an interval of virtual time.
type stretch struct{ from, to int64 }

// outageEnds ends the last outage, unless it has ended already.
func (w *world) outageEnds(at int64) {
	if n := len(w.outages); n > 0 {
		w.outages[n-1].to = min(w.outages[n-1].to, at)
	}
}

// outagesSince returns the total duration of the outages since a time. Only outages of at least two
// heartbeat intervals count, because every worker must have noticed them.
func (w *world) outagesSince(then int64) (sum int64) {
	for _, o := range w.outages {
		if o.to-o.from >= int64(2*w.settings.beat) {
			sum += max(min(o.to, w.now())-max(o.from, then), 0)
		}
	}
	return sum
}

// mayEnd checks that the session of a running worker may be ended. Its heartbeat count must not
// have changed for the failover time, by the fastest clock. Only time in which the store was
// available counts, because a worker that cannot send heartbeats during an outage is not dead.
func (w *world) mayEnd(session string) {
	l, runs := w.runs(session)
	if !runs {
		return
	}
	silent := w.now() - l.hindered.beat - w.outagesSince(l.hindered.beat)
	if least := int64(w.settings.failover) * 20 / 21; silent < least {
		w.breaks("the session of %s is ended after %.3f s of silence without outages, but at least %v is required", l.who, float64(silent)/1e9, time.Duration(least))
	}
}
