package lease

import (
	"maps"
	"time"
)

// coolDown is how long a lease that changed hands is not moved for its load: it has a backlog to read, and time to show what it brings.
const coolDown = 3 * time.Minute

// movement is a change of hands, or an end, that a leader saw.
type movement struct {
	epoch uint64
	at    time.Time
}

// seeLoads fills in what the leases weigh and which of them changed hands or ended lately. The facts share the watch's maps until
// its next view.
func (w *Watch) seeLoads(v View, now time.Time, f *Facts) {
	if !v.Same || w.epochs == nil {
		first := w.epochs == nil
		if first {
			w.moved = map[Key]movement{}
		}
		if first || len(v.Leases) > 2*len(w.epochs) { // a map that has grown by itself is up to twice as large
			w.loads, w.epochs = sized(w.loads, len(v.Leases)), sized(w.epochs, len(v.Leases))
		}
		open := 0
		for i := range v.Leases {
			l := &v.Leases[i]
			if !l.Finished() {
				w.loads[l.Key] = steady(w.loads[l.Key], min(l.Load, MaxLoad))
				open++
			}
			if epoch, known := w.epochs[l.Key]; !known || epoch != l.Epoch {
				w.epochs[l.Key] = l.Epoch
				if !first {
					w.moved[l.Key] = movement{l.Epoch, now}
				}
			}
		}
		if len(w.epochs) > len(v.Leases) || len(w.loads) > open {
			w.forget(v)
		}
	}
	f.Loads, f.Cooling, f.Recent = w.loads, make(map[Key]uint64, len(w.moved)), map[Key]uint64{}
	for k, m := range w.moved {
		if now.Sub(m.at) >= coolDown || w.epochs[k] != m.epoch {
			delete(w.moved, k)
			continue
		}
		f.Cooling[k] = m.epoch
		if now.Sub(m.at) < w.times.Beat {
			f.Recent[k] = m.epoch
		}
	}
}

// sized is a copy of m with room for n.
func sized[V any](m map[Key]V, n int) map[Key]V {
	to := make(map[Key]V, n)
	maps.Copy(to, m)
	return to
}

// forget lets go of leases that are no more, and of the loads of those that are finished.
func (w *Watch) forget(v View) {
	there, open := make(map[Key]bool, len(v.Leases)), make(map[Key]bool, len(v.Leases))
	for i := range v.Leases {
		l := &v.Leases[i]
		there[l.Key] = true
		if !l.Finished() {
			open[l.Key] = true
		}
	}
	prune(w.epochs, there)
	prune(w.loads, open)
}

// steady takes noise of one class out of a load: what was believed moves only as far as it has to, to stay within one class
// of what is said. A load that swings by one class around its own settles on that, and then stands still.
func steady(was, said Load) Load {
	switch {
	case said == 0:
		return was
	case was == 0:
		return said
	case said > was+1:
		return said - 1
	case said+1 < was:
		return said + 1
	default:
		return was
	}
}
