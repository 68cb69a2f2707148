package queue

import (
	"testing"
	"time"
)

func TestStepsOfAHold(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	in := func(s float64) time.Time { return at.Add(time.Duration(s * float64(time.Second))) }
	fresh := func(change func(*hold)) hold {
		h := newHold(at, 30*time.Second, time.Minute)
		if change != nil {
			change(&h)
		}
		return h
	}
	for _, c := range []struct {
		name  string
		hold  hold
		now   float64
		do    step
		d     time.Duration
		again time.Time
	}{
		{"a fresh hold waits until half of it has passed", fresh(nil), 1, stepWait, 0, in(15)},
		{"then it is extended", fresh(nil), 15, stepExtend, 30 * time.Second, in(28)},
		{"an extension in flight is not repeated", fresh(func(h *hold) { h.asked = true }), 20, stepWait, 0, in(28)},
		{"it ends a margin before the service's time", fresh(nil), 28, stepLose, 0, time.Time{}},
		{"also with an extension in flight", fresh(func(h *hold) { h.asked = true }), 28, stepLose, 0, time.Time{}},
		{"an extension counts from when it was sent", fresh(func(h *hold) { h.extended(in(15), 30*time.Second) }), 20, stepWait, 0, in(30)},
		{"the last extension is shorter", fresh(func(h *hold) { h.extended(in(25), 30*time.Second) }), 40, stepExtend, 20 * time.Second, in(53)},
		{"the longest time is never exceeded", fresh(func(h *hold) { h.extended(in(40), 20*time.Second) }), 57, stepWait, 0, in(58)},
		{"and the hold ends then", fresh(func(h *hold) { h.extended(in(40), 20*time.Second) }), 58, stepLose, 0, time.Time{}},
		{"a failed extension is tried again after a pause", fresh(func(h *hold) { h.extensionFailed(in(16), time.Second) }), 16.5, stepWait, 0, in(17)},
		{"and then", fresh(func(h *hold) { h.extensionFailed(in(16), time.Second) }), 17, stepExtend, 30 * time.Second, in(28)},
		{"a pause beyond the end decides at the end", fresh(func(h *hold) { h.extensionFailed(in(27), 5*time.Second) }), 27, stepWait, 0, in(28)},
		{"a lost hold needs nothing", fresh(func(h *hold) { h.lost = true }), 40, stepWait, 0, time.Time{}},
	} {
		if do, d, again := c.hold.decide(in(c.now)); do != c.do || d != c.d || !again.Equal(c.again) {
			t.Errorf("%s: step %d for %v, again at %v", c.name, do, d, again.Sub(at))
		}
	}
}

func TestMargins(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]time.Duration{5 * time.Second: 500 * time.Millisecond, 20 * time.Second: 2 * time.Second, time.Hour: 2 * time.Second} {
		if got := margin(d); got != want {
			t.Errorf("%v: %v", d, got)
		}
	}
}
