package lease

import (
	"maps"
	"slices"
	"time"
)

// coolDown is the time after a change of owner in which a lease is not moved to balance the load.
// The new owner first has a backlog to read, so the lease needs time to show its usual load.
const coolDown = 3 * time.Minute

// movement is a new lease, or a change of a lease's epoch, that a leader observed.
type movement struct {
	Key
	epoch uint64
	at    time.Duration // time since the first view
}

// seeLoads adds the loads of the leases to f. It also adds the leases that are new or whose epoch
// changed recently. The facts share the watch's maps until its next view.
func (w *Watch) seeLoads(v View, now time.Time, f *Facts) {
	if !v.Same || w.epochs == nil {
		first := w.epochs == nil
		if first {
			w.began, w.loads, w.cooling = now, map[Key]Load{}, map[Key]uint64{}
		}
		// A map that grew step by step can be twice as large as necessary.
		if first || len(v.Leases) > 2*len(w.epochs) {
			w.epochs = sized(w.epochs, len(v.Leases))
		}
		w.seeMoves(v, now, first)
		if len(w.epochs) > len(v.Leases) {
			w.forget(v)
		}
	}
	w.cool(now)
	f.Loads, f.Cooling, f.Recent = w.loads, w.cooling, nil
	for i := len(w.moves) - 1; i >= 0 && now.Sub(w.began)-w.moves[i].at < w.times.Heartbeat; i-- {
		if m := &w.moves[i]; w.cooling[m.Key] == m.epoch {
			put(&f.Recent, m.Key, m.epoch)
		}
	}
}

// seeMoves notes the loads and the epochs of a view's leases.
func (w *Watch) seeMoves(v View, now time.Time, first bool) {
	for i := range v.Leases {
		l := &v.Leases[i]
		switch {
		case l.Finished():
			delete(w.loads, l.Key)
		case l.Load != 0: // other leases keep their last known load
			w.loads[l.Key] = steady(w.loads[l.Key], min(l.Load, MaxLoad))
		}
		if epoch, known := w.epochs[l.Key]; !known || epoch != l.Epoch {
			w.epochs[l.Key] = l.Epoch
			if !first {
				w.moveTo(l.Key, l.Epoch, now, len(v.Leases)-i)
			}
		}
	}
}

// moveTo notes a movement. more is the maximum number of movements that may follow.
func (w *Watch) moveTo(k Key, epoch uint64, now time.Time, more int) {
	// Drop the earlier movements of leases that moved again. The slice then grows by the movements
	// that may follow, but it at most doubles: usually few leases move, and sometimes many at once.
	if len(w.moves) == cap(w.moves) {
		w.moves = slices.DeleteFunc(w.moves, func(m movement) bool { return w.cooling[m.Key] != m.epoch })
		grown := make([]movement, len(w.moves), len(w.moves)+min(more, max(len(w.moves), 16)))
		copy(grown, w.moves)
		w.moves = grown
	}
	w.moves = append(w.moves, movement{k, epoch, now.Sub(w.began)})
	w.cooling[k] = epoch
}

// cool drops the movements that are older than coolDown. It also drops the cooling entries of the
// leases that have not moved again.
func (w *Watch) cool(now time.Time) {
	n := 0
	for n < len(w.moves) && now.Sub(w.began)-w.moves[n].at >= coolDown {
		if m := &w.moves[n]; w.cooling[m.Key] == m.epoch {
			delete(w.cooling, m.Key)
		}
		n++
	}
	switch {
	case n == 0:
	case n == len(w.moves):
		w.moves, w.cooling = nil, map[Key]uint64{} // moves are rare, but many happen at once
	default:
		w.moves = slices.Delete(w.moves, 0, n)
	}
}

// sized returns a copy of m with room for n elements.
func sized[V any](m map[Key]V, n int) map[Key]V {
	to := make(map[Key]V, n)
	maps.Copy(to, m)
	return to
}

// forget drops leases that no longer exist.
func (w *Watch) forget(v View) {
	there := make(map[Key]bool, len(v.Leases))
	for i := range v.Leases {
		there[v.Leases[i].Key] = true
	}
	prune(w.epochs, there)
	prune(w.loads, there)
	prune(w.cooling, there)
}

// steady removes noise of one class from a load. Its arguments are the previous result and the
// reported load. If they differ by at most one class, steady returns the previous result. Otherwise
// it returns the nearest class that is within one class of the reported load. For a load that
// varies by one class around its mean, the result therefore stops changing.
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
