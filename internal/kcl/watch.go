package kcl

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// DefaultFailover is the default failover time in the configuration of the KCL.
const DefaultFailover = 10 * time.Second

// A worker of KCL 3 updates its metrics in the table once per metricsInterval. Metrics that are
// older than metricsOld prove nothing until they change.
const (
	metricsInterval = 30 * time.Second
	metricsOld      = 90 * time.Second
)

// Watch compares several reads of a table to find out whether workers of the KCL run. A running
// worker renews each of its leases three times within the failover time. A worker of KCL 3 without
// leases updates its metrics. Watch compares a worker's clock with the clock of this process only
// to ignore old metrics.
type Watch struct {
	window time.Duration
	first  time.Time
	leases map[string]*observed
	pulses map[string]*observed
	last   time.Time
	// vanished is the time of the last look at which a lease of an earlier look was missing.
	vanished time.Time
}

// observed is the state of one item.
type observed struct {
	worker string // that has it
	state  string
	since  time.Time // of the first look that showed this state
	moved  bool
	by     string // the worker that changed it last
	counts bool   // whether it has to be still
	fresh  bool   // the first look showed metrics that were not old
}

// NewWatch returns a Watch for workers with this failover time. A lease counts as abandoned if it
// has not changed for that time and a margin. The margin is a fifth of the time, but at least a
// second.
func NewWatch(failover time.Duration) *Watch {
	return &Watch{
		window: failover + max(failover/5, time.Second),
		leases: map[string]*observed{}, pulses: map[string]*observed{},
	}
}

// Window returns how long a lease must be unchanged until it counts as abandoned.
func (w *Watch) Window() time.Duration { return w.window }

// See adds a look. now must be the time at which the look began. Otherwise a slow read would make
// an item look unchanged for longer than it was.
func (w *Watch) See(now time.Time, t Table) {
	begun := !w.first.IsZero()
	if !begun {
		w.first = now
	}
	w.last = now
	there := make(map[string]bool, len(t.Leases))
	owns := map[string]bool{}
	for i := range t.Leases {
		l := &t.Leases[i]
		there[l.Key], owns[l.Worker()] = true, true
		state := fmt.Sprint(l.Counter, "\x00", l.Owner, "\x00", l.Holder, "\x00", l.At)
		see(w.leases, l.Key, l.Worker(), state, now, begun).counts = l.Worker() != ""
	}
	for key := range w.leases {
		if !there[key] {
			delete(w.leases, key)
			w.vanished = now
		}
	}
	for _, p := range t.Pulses {
		fresh := p.Updated > 0 && now.Sub(time.Unix(p.Updated, 0)).Abs() < metricsOld
		o := see(w.pulses, p.Key, p.Worker, p.Value, now, begun)
		o.fresh = o.fresh || fresh && !begun
		// If a worker has leases, its metrics do not count, because its leases show sooner whether
		// it runs.
		o.counts = !owns[p.Worker] && (o.moved || o.fresh)
	}
}

// see notes the state of one item.
func see(all map[string]*observed, key, worker, state string, now time.Time, begun bool) *observed {
	o := all[key]
	switch {
	case o == nil:
		o = &observed{worker: worker, state: state, since: now, moved: begun, by: worker}
		all[key] = o
	case o.state != state:
		o.by = cmp.Or(worker, o.worker)
		o.state, o.worker, o.since, o.moved = state, worker, now, true
	}
	return o
}

// Running is a worker that a Watch has seen running.
type Running struct {
	Worker string
	Leases int    // that it changed during the watch
	Lease  string // the key of one of them
}

// Running returns the workers that changed an item within the last window, sorted by name.
func (w *Watch) Running() []Running {
	found := map[string]*Running{}
	note := func(key string, o *observed, window time.Duration, lease bool) {
		if !o.moved || w.last.Sub(o.since) >= window {
			return
		}
		r := found[o.by]
		if r == nil {
			r = &Running{Worker: o.by}
			found[o.by] = r
		}
		if lease {
			r.Leases++
			if r.Lease == "" || key < r.Lease {
				r.Lease = key
			}
		}
	}
	for key, o := range w.leases {
		if o.counts {
			note(key, o, w.window, true)
		}
	}
	for key, o := range w.pulses {
		if o.counts {
			note(key, o, metricsInterval+w.window/5, false)
		}
	}
	var all []Running
	for _, name := range slices.Sorted(maps.Keys(found)) {
		all = append(all, *found[name])
	}
	return all
}

// Left returns how long all items must still remain unchanged until the workers count as stopped.
// The result 0 means that they have stopped. A single look proves this only if no lease has an
// owner and no metrics are recent.
func (w *Watch) Left() time.Duration {
	if w.first.IsZero() {
		return w.window
	}
	var left time.Duration
	for _, o := range w.leases {
		if o.counts {
			left = max(left, w.window-w.last.Sub(o.since))
		}
	}
	for _, o := range w.pulses {
		if o.counts {
			left = max(left, metricsInterval+w.window/5-w.last.Sub(o.since))
		}
	}
	if !w.vanished.IsZero() {
		left = max(left, w.window-w.last.Sub(w.vanished))
	}
	return max(left, 0)
}

// Changed reports whether the leases in a table differ from those of the last look. It names one
// change. Use it for a check right before a write.
func (w *Watch) Changed(t Table) (what string, changed bool) {
	there := map[string]bool{}
	for i := range t.Leases {
		l := &t.Leases[i]
		there[l.Key] = true
		o := w.leases[l.Key]
		if o == nil ||
			o.state != fmt.Sprint(l.Counter, "\x00", l.Owner, "\x00", l.Holder, "\x00", l.At) {
			return fmt.Sprintf("lease %s of worker %s", l.Key, cmp.Or(l.Worker(), "(none)")), true
		}
	}
	for key := range w.leases {
		if !there[key] {
			return fmt.Sprintf("lease %s, which is gone", key), true
		}
	}
	return "", false
}

// RunningText returns a list of workers for users.
func RunningText(running []Running) string {
	const most = 5
	var names []string
	for _, r := range running[:min(len(running), most)] {
		name := cmp.Or(r.Worker, "a worker without a name")
		switch {
		case r.Leases == 1:
			name += fmt.Sprintf(" (has lease %s)", r.Lease)
		case r.Leases > 1:
			name += fmt.Sprintf(" (has %d leases, such as %s)", r.Leases, r.Lease)
		default:
			name += " (updates its metrics)"
		}
		names = append(names, name)
	}
	if more := len(running) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
