package lease

import (
	"time"
)

// Follow is how a worker watches the others through the answers to its own beats: the one that
// leads, and, where the store tells them ([WatchBeats]), all. The zero Follow is ready. Not for
// concurrent use.
type Follow struct {
	beats  stillness
	leader Leader
	still  time.Duration
}

// Missed notes that a beat failed.
func (f *Follow) Missed() { f.beats.missed() }

// often is how many times in a beat interval at most counts are compared. A worker that beats more
// often, with each record that it handles by itself, would see them stand in the short times
// between its beats alone, and find the dead late.
const often = 4

// See takes in the orders of a beat that was sent at began and answered at ended. It reports
// whether the beat of the leader that they name has stood still for the failover time, and if not,
// how long that would still take.
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

// Watch makes the watch of a worker that has come to lead. It goes on from what this worker has
// seen of all sessions, so that those that died with the leader before are found when it is.
// Revocations wait anew: see [Watch.Told]. suspect is as for [NewWatch].
func (f *Follow) Watch(times Times, suspect Leader) *Watch {
	w := NewWatch(times, suspect)
	if f.beats.sessions != nil {
		w.beats = f.beats.clone()
	}
	return w
}
