package kcl

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// DefaultFailover is the failover time of the KCL if its configuration says nothing else.
const DefaultFailover = 10 * time.Second

// Heartbeats of items that are not leases: a worker of KCL 3 updates its metrics at this interval.
// Metrics that are older than the second time count for nothing until they change.
const (
	metricsInterval = 30 * time.Second
	metricsOld      = 90 * time.Second
)

// Watch finds out from looks at a table whether workers of the KCL run. A worker that runs renews
// each of its leases three times within the failover time. A worker of KCL 3 without leases updates
// its metrics. No clock of a worker is compared with another one, except to leave out metrics that
// are old.
type Watch struct {
	window time.Duration
	first  time.Time
	leases map[string]*observed
	pulses map[string]*observed
	last   time.Time
	// vanished is when a lease was last found missing.
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

// NewWatch returns a Watch for workers with this failover time. Leases count as abandoned when
// they were still for that time and a margin of a fifth, at least a second.
func NewWatch(failover time.Duration) *Watch {
	return &Watch{
		window: failover + max(failover/5, time.Second),
		leases: map[string]*observed{}, pulses: map[string]*observed{},
	}
}

// Window returns for how long leases have to be still.
func (w *Watch) Window() time.Duration { return w.window }

// See adds a look. The time is when the look began, so that a slow read never makes an item look
// still for longer than it was.
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
		// The leases of a worker show sooner than its metrics whether it runs.
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

// Running is a worker that was seen to run.
type Running struct {
	Worker string
	Leases int    // that it changed during the watch
	Lease  string // the key of one of them
}

// Running returns the workers that changed an item within the last window, sorted.
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

// Left returns how long everything still has to be still before the workers count as stopped. It
// is 0 when they do. One look alone proves it only if no lease has an owner and no metrics are new.
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

// Changed reports whether a look differs from the last one in the leases, for a check right before
// a write. It names one change.
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

// RunningText names workers for people.
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
