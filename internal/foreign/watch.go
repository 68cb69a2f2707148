package foreign

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// skew is the difference between clocks that is tolerated. A sign that is older than its interval
// and this time proves nothing until it changes.
const skew = time.Minute

// Watch compares several reads of a client's tables to find out whether its workers run. A worker
// has stopped if none of its signs has changed for the sign's interval and a margin. A clock of a
// worker is compared with the clock of this process only to ignore old signs.
type Watch struct {
	first, last time.Time
	signs       map[string]*watched
	state       string
}

type watched struct {
	Sign
	since  time.Time // of the first look that showed this value
	moved  bool
	counts bool // whether it must be still
}

// NewWatch returns a Watch without a look.
func NewWatch() *Watch { return &Watch{signs: map[string]*watched{}} }

// See adds a look. now is the time at which the look began.
func (w *Watch) See(now time.Time, s State) {
	begun := !w.first.IsZero()
	if !begun {
		w.first = now
	}
	w.last, w.state = now, fingerprint(s)
	there := map[string]bool{}
	for _, n := range s.Signs {
		there[n.Key] = true
		old := w.signs[n.Key]
		switch {
		case old == nil:
			fresh := n.Updated.IsZero() || now.Sub(n.Updated) < n.Every+skew
			w.signs[n.Key] = &watched{Sign: n, since: now, moved: begun, counts: begun || fresh}
		case old.Value != n.Value:
			*old = watched{Sign: n, since: now, moved: true, counts: true}
		}
	}
	for key := range w.signs {
		if !there[key] {
			delete(w.signs, key)
		}
	}
}

// window returns how long a sign must be unchanged.
func window(every time.Duration) time.Duration { return every + max(every/5, time.Second) }

// Running returns the sorted names of the workers that changed a sign recently.
func (w *Watch) Running() []string {
	var names []string
	for _, o := range w.signs {
		if o.moved && w.last.Sub(o.since) < window(o.Every) {
			names = append(names, o.Worker)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Left returns how long all signs must still remain unchanged until the workers count as stopped.
func (w *Watch) Left() time.Duration {
	var left time.Duration
	for _, o := range w.signs {
		if o.counts {
			left = max(left, window(o.Every)-w.last.Sub(o.since))
		}
	}
	return left
}

// Changed reports whether a state differs from that of the last look.
func (w *Watch) Changed(s State) bool { return fingerprint(s) != w.state }

func fingerprint(s State) string {
	var b strings.Builder
	for _, r := range s.Rows {
		fmt.Fprintln(&b, r.Shard, r.At, r.Raw)
	}
	for _, n := range s.Signs {
		fmt.Fprintln(&b, n.Key, n.Worker, n.Value)
	}
	return b.String()
}
