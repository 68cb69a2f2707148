package lease

import (
	"time"
)

// Follow watches other sessions through the answers to a worker's own heartbeats. It watches the
// leader. It also watches all other sessions if the store reports them ([WatchHeartbeats]). The
// zero Follow is ready to use. It is not safe for concurrent use.
type Follow struct {
	beats  stillness
	leader Leader
	still  time.Duration
}

// Missed notes that a heartbeat failed.
func (f *Follow) Missed() { f.beats.missed() }

// often is the maximum number of comparisons per heartbeat interval. A worker that handles records
// one by one sends more heartbeats than that. Without the limit it would only measure the short
// times between its heartbeats and would find dead sessions late.
const often = 4

// See evaluates the orders of a heartbeat that was sent at began and answered at ended. dead is
// true if the heartbeat of the leader in o has not changed for the failover time. Otherwise wait is
// the time until the leader can count as dead.
func (f *Follow) See(o Orders, times Times, began, ended time.Time) (dead bool, wait time.Duration) {
	if o.Leader != f.leader || f.beats.last.IsZero() || began.Sub(f.beats.last) >= times.Heartbeat/often {
		f.compare(o, f.beats.step(began, ended, times.Heartbeat))
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
		f.beats.see(other.Session, other.Heartbeats, step)
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
// observations of all sessions. Sessions that died together with the previous leader are therefore
// found at the same time. The waits for revocations start again, see [Watch.Told]. suspect has the
// same meaning as for [NewWatch].
func (f *Follow) Watch(times Times, suspect Leader) *Watch {
	w := NewWatch(times, suspect)
	if f.beats.sessions != nil {
		w.beats = f.beats.clone()
	}
	return w
}
