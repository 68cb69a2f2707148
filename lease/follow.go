package lease

import (
	"time"
)

// Follow watches other sessions through the answers to a worker's own heartbeats. It watches the
// leader, and all sessions if the store reports them ([WatchBeats]). The zero Follow is ready to
// use. It is not safe for concurrent use.
type Follow struct {
	beats  stillness
	leader Leader
	still  time.Duration
}

// Missed records that a heartbeat failed.
func (f *Follow) Missed() { f.beats.missed() }

// often is the maximum number of comparisons per heartbeat interval. A worker sends more heartbeats
// than that while it handles records one by one. Without the limit it would measure only the short
// times between its heartbeats and find dead sessions late.
const often = 4

// See evaluates the orders of a heartbeat that was sent at began and answered at ended. dead is
// true if the heartbeat of the leader named in o has stood still for the failover time. Otherwise
// wait is how long that would still take.
func (f *Follow) See(o Orders, times Times, began, ended time.Time) (dead bool, wait time.Duration) {
	if o.Leader != f.leader || f.beats.last.IsZero() || began.Sub(f.beats.last) >= times.Beat/often {
		f.compare(o, f.beats.step(began, ended, times.Beat))
	}
	return f.still >= times.Failover, max(times.Failover-f.still, 0)
}

func (f *Follow) compare(o Orders, step time.Duration) {
	if o.Leader != f.leader {
		f.leader, f.still = o.Leader, 0
	} else {
		f.still += step
	}
	if f.beats.sessions == nil {
		f.beats = stillness{f.beats.last, map[string]*still[uint64]{}}
	}
	for _, other := range o.Others {
		f.beats.see(other.Session, other.Beat, step)
	}
	if len(f.beats.sessions) > len(o.Others) {
		here := make(map[string]bool, len(o.Others))
		for _, other := range o.Others {
			here[other.Session] = true
		}
		prune(f.beats.sessions, here)
	}
}

// Watch returns the watch of a worker that has become the leader. It continues with this worker's
// observations of all sessions, so that sessions that died together with the previous leader are
// found at the same time. Waiting for revocations starts again, see [Watch.Told]. suspect is as for
// [NewWatch].
func (f *Follow) Watch(times Times, suspect Leader) *Watch {
	w := NewWatch(times, suspect)
	if f.beats.sessions != nil {
		w.beats = f.beats.clone()
	}
	return w
}
