package kcl

import (
	"strings"
	"testing"
	"time"
)

// look returns a table. Each argument describes a lease as "shard counter owner", with
// "owner>holder" during a handoff.
func look(t *testing.T, leases ...string) Table {
	t.Helper()
	var table Table
	for _, text := range leases {
		f := strings.Fields(text + " -")
		l := Lease{Key: f[0], Shard: f[0], At: Checkpoint{Value: "7"}}
		for _, c := range f[1] {
			l.Counter = 10*l.Counter + int64(c-'0')
		}
		if owner, holder, _ := strings.Cut(f[2], ">"); owner != "-" {
			l.Owner, l.Holder = owner, holder
		}
		table.Leases = append(table.Leases, l)
	}
	return table
}

func TestWatch(t *testing.T) {
	at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	type step struct {
		second  int
		leases  []string
		metrics int64 // of worker w9, Unix seconds relative to now; 0 for none
		running string
		left    time.Duration
	}
	for name, steps := range map[string][]step{
		"an owner needs the whole window": {
			{second: 0, leases: []string{"a 1 w1", "b 1"}, left: 12 * time.Second},
			{second: 6, leases: []string{"a 1 w1", "b 1"}, left: 6 * time.Second},
			{second: 12, leases: []string{"a 1 w1", "b 1"}},
		},
		"leases without owners need one look": {
			{second: 0, leases: []string{"a 1", "b 1"}},
		},
		"a counter that moves names the worker, and begins the window again": {
			{second: 0, leases: []string{"a 1 w1", "b 1 w2", "c 1 w1"}, left: 12 * time.Second},
			{second: 3, leases: []string{"a 2 w1", "b 1 w2", "c 2 w1"}, running: "w1 (has 2 leases, such as a)", left: 12 * time.Second},
			{second: 11, leases: []string{"a 2 w1", "b 1 w2", "c 2 w1"}, running: "w1 (has 2 leases, such as a)", left: 4 * time.Second},
			{second: 15, leases: []string{"a 2 w1", "b 1 w2", "c 2 w1"}},
		},
		"in a handoff the present owner runs": {
			{second: 0, leases: []string{"a 1 w2>w1"}, left: 12 * time.Second},
			{second: 3, leases: []string{"a 2 w2>w1"}, running: "w1 (has lease a)", left: 12 * time.Second},
		},
		"the start of a handoff does not touch the counter": {
			{second: 0, leases: []string{"a 1 w1"}, left: 12 * time.Second},
			{second: 3, leases: []string{"a 1 w2>w1"}, running: "w1 (has lease a)", left: 12 * time.Second},
		},
		"an owner that leaves in order": {
			{second: 0, leases: []string{"a 1 w1"}, left: 12 * time.Second},
			{second: 3, leases: []string{"a 2"}},
		},
		"a lease that appears": {
			{second: 0, leases: []string{"a 1"}},
			{second: 2, leases: []string{"a 1", "b 0 w1"}, running: "w1 (has lease b)", left: 12 * time.Second},
		},
		"a lease that is deleted": {
			{second: 0, leases: []string{"a 1", "b 1"}},
			{second: 2, leases: []string{"a 1"}, left: 12 * time.Second},
			{second: 14, leases: []string{"a 1"}},
		},
		"a worker without leases has new metrics": {
			{second: 0, leases: []string{"a 1"}, metrics: -10, left: 32400 * time.Millisecond},
			{second: 20, leases: []string{"a 1"}, metrics: 19, running: "w9 (updates its metrics)", left: 32400 * time.Millisecond},
			{second: 53, leases: []string{"a 1"}, metrics: 19},
		},
		"the leases of a worker count, and not its metrics": {
			{second: 0, leases: []string{"a 1 w9"}, metrics: -10, left: 12 * time.Second},
			{second: 2, leases: []string{"a 2 w9"}, metrics: 1, running: "w9 (has lease a)", left: 12 * time.Second},
			{second: 14, leases: []string{"a 2 w9"}, metrics: 1},
		},
		"old metrics count for nothing": {
			{second: 0, leases: []string{"a 1"}, metrics: -3600},
		},
		"old metrics that change": {
			{second: 0, leases: []string{"a 1"}, metrics: -3600},
			{second: 2, leases: []string{"a 1"}, metrics: -3570, running: "w9 (updates its metrics)", left: 32400 * time.Millisecond},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWatch(DefaultFailover)
			if w.Left() != w.Window() || w.Window() != 12*time.Second {
				t.Errorf("before the first look %s of %s are left", w.Left(), w.Window())
			}
			for _, s := range steps {
				table := look(t, s.leases...)
				if s.metrics != 0 {
					updated := now.Unix() + s.metrics
					table.Pulses = []Pulse{{"w9", "w9", at(int(s.metrics)).String(), updated}}
				}
				w.See(at(s.second), table)
				if got := RunningText(w.Running()); got != s.running || w.Left() != s.left {
					t.Errorf(
						"after %d s: running %q, want %q; left %s, want %s",
						s.second,
						got,
						s.running,
						w.Left(),
						s.left,
					)
				}
				if what, changed := w.Changed(table); changed {
					t.Errorf("the same look has changed: %s", what)
				}
			}
		})
	}
}

func TestWatchSeesAChangeBeforeTheWrite(t *testing.T) {
	w := NewWatch(time.Second)
	w.See(now, look(t, "a 1 w1", "b 1"))
	for _, c := range []struct {
		leases []string
		want   string
	}{
		{[]string{"a 2 w1", "b 1"}, "lease a of worker w1"},
		{[]string{"a 1 w1", "b 1 w3"}, "lease b of worker w3"},
		{[]string{"a 1 w1", "b 1", "c 0"}, "lease c of worker (none)"},
		{[]string{"a 1 w1"}, "lease b, which is gone"},
	} {
		if what, changed := w.Changed(look(t, c.leases...)); what != c.want || !changed {
			t.Errorf("%q: %q, %t, want %q", c.leases, what, changed, c.want)
		}
	}
}

func TestRunningWorkersAreNamed(t *testing.T) {
	var many []Running
	for _, name := range []string{"a", "b", "c", "d", "e", "f", ""} {
		many = append(many, Running{Worker: name})
	}
	if got := RunningText(many); !strings.HasSuffix(got, "e (updates its metrics), and 2 more") {
		t.Error(got)
	}
}
