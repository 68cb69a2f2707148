package engine

import (
	"fmt"
	"testing"
	"time"
)

// ledgerStep is one step of a history of a single record. at is the time of the step.
type ledgerStep struct {
	at      time.Duration
	do      string // "receive", "receive dead", "acknowledge", "extend", "acknowledge dead", "extend dead", "restore"
	handle  int    // number of the receive whose handle is used, from 1
	timeout time.Duration
	want    string // what was received, or the reason of the refusal; empty: done
}

// TestLedger runs histories of one record. A receive without a timeout of its own hides the record
// for ten seconds. A record becomes a dead letter after two receives.
func TestLedger(t *testing.T) {
	const s = time.Second
	for name, tc := range map[string]struct {
		rules QueueRules
		most  int
		steps []ledgerStep
	}{
		"acknowledged": {steps: []ledgerStep{
			{at: 0, do: "receive", want: "count 1"}, {at: 9 * s, do: "acknowledge", handle: 1}, {at: 20 * s, do: "receive", want: "none"},
			{at: 20 * s, do: "acknowledge", handle: 1, want: "the record was acknowledged"},
		}},
		"hidden for the timeout": {steps: []ledgerStep{
			{at: 0, do: "receive", want: "count 1"}, {at: 10*s - 1, do: "receive", want: "none"}, {at: 10 * s, do: "receive", want: "count 2"},
		}},
		"an expired handle": {steps: []ledgerStep{
			{at: 0, do: "receive", want: "count 1"}, {at: 10 * s, do: "acknowledge", handle: 1, want: "its visibility timeout has ended"},
			{at: 10 * s, do: "extend", handle: 1, timeout: s, want: "its visibility timeout has ended"},
		}},
		"an expired handle is accepted": {rules: QueueRules{AcceptExpired: true}, steps: []ledgerStep{
			{at: 0, do: "receive", want: "count 1"}, {at: 10 * s, do: "extend", handle: 1, timeout: 5 * s},
			{at: 14 * s, do: "receive", want: "none"}, {at: 15 * s, do: "acknowledge", handle: 1}, {at: 15 * s, do: "receive", want: "none"},
		}},
		"a superseded handle": {rules: QueueRules{AcceptExpired: true}, steps: []ledgerStep{
			{at: 0, do: "receive", want: "count 1"}, {at: 10 * s, do: "receive", want: "count 2"},
			{at: 11 * s, do: "acknowledge", handle: 1, want: "the record was received again"}, {at: 11 * s, do: "acknowledge", handle: 2},
		}},
		"a superseded handle is accepted": {rules: QueueRules{AcceptSuperseded: true}, steps: []ledgerStep{
			{at: 0, do: "receive", want: "count 1"}, {at: 10 * s, do: "receive", want: "count 2"}, {at: 11 * s, do: "acknowledge", handle: 1},
			{at: 11 * s, do: "acknowledge", handle: 2, want: "the record was acknowledged"},
		}},
		"an extension counts from the call": {steps: []ledgerStep{
			{at: 0, do: "receive", want: "count 1"}, {at: 5 * s, do: "extend", handle: 1, timeout: 20 * s}, {at: 24 * s, do: "receive", want: "none"},
			{at: 24 * s, do: "extend", handle: 1, timeout: 2 * s}, {at: 25 * s, do: "acknowledge", handle: 1},
		}},
		"an extension can shorten": {steps: []ledgerStep{
			{at: 0, do: "receive", want: "count 1"}, {at: 1 * s, do: "extend", handle: 1, timeout: s}, {at: 2 * s, do: "receive", want: "count 2"},
		}},
		"a release": {steps: []ledgerStep{
			{at: 0, do: "receive", want: "count 1"}, {at: s, do: "extend", handle: 1}, {at: s, do: "acknowledge", handle: 1, want: "its visibility timeout has ended"},
			{at: s, do: "receive", want: "count 2"},
		}},
		"a timeout of 0 on the receive": {steps: []ledgerStep{
			{at: 0, do: "receive", timeout: -1, want: "count 1"}, {at: 0, do: "acknowledge", handle: 1, want: "its visibility timeout has ended"},
			{at: 0, do: "receive", timeout: -1, want: "count 2"}, {at: 0, do: "receive", want: "none"}, {at: 0, do: "receive dead", want: "count 3"},
		}},
		"a dead letter after the last timeout": {steps: []ledgerStep{
			{at: 0, do: "receive", want: "count 1"}, {at: 10 * s, do: "receive", want: "count 2"}, {at: 19 * s, do: "receive dead", want: "none"},
			{at: 20 * s, do: "receive dead", want: "count 3"}, {at: 21 * s, do: "acknowledge", handle: 2, want: "the record became a dead letter"},
			{at: 21 * s, do: "acknowledge dead", handle: 3}, {at: 60 * s, do: "receive dead", want: "none"},
		}},
		"a dead letter after the last release": {most: 1, steps: []ledgerStep{
			{at: 0, do: "receive", want: "count 1"}, {at: s, do: "extend", handle: 1}, {at: s, do: "receive dead", want: "count 2"},
		}},
		"a dead letter on the receive": {rules: QueueRules{DeadOnReceive: true}, most: 1, steps: []ledgerStep{
			{at: 0, do: "receive", want: "count 1"}, {at: 10 * s, do: "receive dead", want: "none"}, {at: 11 * s, do: "receive", want: "none"},
			{at: 11 * s, do: "receive dead", want: "count 2"},
		}},
		"a dead letter keeps its count": {rules: QueueRules{KeepDeadLetterCount: true}, most: 1, steps: []ledgerStep{
			{at: 0, do: "receive", want: "count 1"}, {at: 10 * s, do: "receive dead", want: "count 1"}, {at: 20 * s, do: "receive dead", want: "count 1"},
		}},
		"a dead letter is hidden, extended and received again": {most: 1, steps: []ledgerStep{
			{at: 0, do: "receive", want: "count 1"}, {at: 10 * s, do: "receive dead", want: "count 2"}, {at: 11 * s, do: "receive dead", want: "none"},
			{at: 12 * s, do: "extend dead", handle: 2, timeout: 10 * s}, {at: 21 * s, do: "receive dead", want: "none"}, {at: 22 * s, do: "receive dead", want: "count 3"},
		}},
		"a dead letter is restored": {most: 1, steps: []ledgerStep{
			{at: 0, do: "receive", want: "count 1"}, {at: 10 * s, do: "receive dead", want: "count 2"}, {at: 11 * s, do: "restore", handle: 2},
			{at: 11 * s, do: "restore", handle: 2, want: "the record was restored"}, {at: 11 * s, do: "receive dead", want: "none"},
			{at: 11 * s, do: "receive", want: "count 1"}, {at: 21 * s, do: "receive dead", want: "count 2"},
		}},
		"no dead letters": {most: -1, steps: []ledgerStep{
			{at: 0, do: "receive", want: "count 1"}, {at: 10 * s, do: "receive", want: "count 2"}, {at: 20 * s, do: "receive", want: "count 3"},
			{at: 30 * s, do: "receive", want: "count 4"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			most := tc.most
			switch {
			case most == 0:
				most = 2
			case most < 0:
				most = 0
			}
			h := ledgerHistory{l: newLedger(tc.rules), most: most, began: time.Unix(1000, 0)}
			for i, step := range tc.steps {
				if got := h.carryOut(step); got != step.want {
					t.Fatalf("step %d, %s at %v: got %q, want %q", i+1, step.do, step.at, got, step.want)
				}
			}
		})
	}
}

// ledgerHistory is a queue of one record.
type ledgerHistory struct {
	l       *ledger
	most    int
	began   time.Time
	started bool
	handles []uint64
}

var theRecord = place{3, 7}

func (h *ledgerHistory) carryOut(step ledgerStep) string {
	now := h.began.Add(step.at)
	h.l.settle(now, h.most)
	on := normalPath
	switch step.do {
	case "receive dead", "acknowledge dead", "extend dead", "restore":
		on = deadPath
	}
	if step.do == "receive" || step.do == "receive dead" {
		timeout := 10 * time.Second
		if step.timeout != 0 {
			timeout = max(0, step.timeout)
		}
		var d *delivery
		if on == normalPath && !h.started {
			h.started = true
			d = h.l.fresh(theRecord, now, timeout)
		} else if d = h.l.oldest(on, h.most, func(place) bool { return true }); d == nil {
			return "none"
		} else {
			h.l.again(d, now, timeout)
		}
		h.handles = append(h.handles, d.number)
		return fmt.Sprint("count ", d.count)
	}
	d, reason := h.l.find(theRecord, h.handles[step.handle-1], on, now)
	if d == nil {
		return reason
	}
	switch step.do {
	case "acknowledge", "acknowledge dead":
		h.l.forget(d)
	case "extend", "extend dead":
		h.l.extend(d, now, step.timeout, h.most)
	case "restore":
		h.l.restore(d, now)
	}
	return ""
}

// TestLedgerCounts compares the counters of a ledger with its records after many steps.
func TestLedgerCounts(t *testing.T) {
	for _, rules := range []QueueRules{{}, {AcceptSuperseded: true, CountDeadLetters: true}, {DeadOnReceive: true}} {
		l := newLedger(rules)
		now := time.Unix(1000, 0)
		present := func(p place) bool { return p.index%7 != 3 || now.Before(time.Unix(1500, 0)) }
		for i := range uint64(3000) {
			now = now.Add(time.Duration(i*i%997) * time.Millisecond)
			l.settle(now, 3)
			switch p := (place{uint32(i % 4), i * 31 % 101}); {
			case l.deliveries[p] == nil && i%3 == 0:
				l.fresh(p, now, time.Duration(i%40)*time.Second)
			case i%5 == 0:
				if d := l.oldest(path(i%2), 3, present); d != nil {
					l.again(d, now, time.Duration(i%30)*time.Second)
				}
			case l.deliveries[p] != nil && i%11 == 0:
				l.forget(l.deliveries[p])
			case l.deliveries[p] != nil && i%3 == 1:
				l.extend(l.deliveries[p], now, time.Duration(i%9)*time.Second, 3)
			case l.deliveries[p] != nil && l.deliveries[p].path == deadPath:
				l.restore(l.deliveries[p], now)
			}
			if i == 2000 {
				l.sweep(present)
			}
			var n [2][2]int
			for _, d := range l.deliveries {
				hidden := 0
				heaps := l.visible
				if d.hidden {
					hidden, heaps = 1, l.hidden
				}
				n[d.path][hidden]++
				if h := heaps[d.path]; d.at >= len(h) || h[d.at] != d {
					t.Fatalf("step %d: %+v is not in its place", i, d)
				}
			}
			for on := range n {
				if n[on][0] != len(l.visible[on]) || n[on][1] != len(l.hidden[on]) {
					t.Fatalf("step %d: %d and %d deliveries on path %d, the heaps have %d and %d", i, n[on][0], n[on][1], on, len(l.visible[on]), len(l.hidden[on]))
				}
			}
			want := n[normalPath][1]
			if rules.CountDeadLetters {
				want += n[deadPath][1]
			}
			if l.inFlight() != want {
				t.Fatalf("step %d: %d in flight, want %d", i, l.inFlight(), want)
			}
		}
	}
}

// The documented limit needs little time: the work for a receive does not grow with the records in
// flight.
func TestLedgerHolds120000Records(t *testing.T) {
	l, now := newLedger(QueueRules{}), time.Unix(1000, 0)
	for i := range uint64(120_000) {
		l.settle(now, 2)
		l.fresh(place{uint32(i % 4), i}, now, time.Duration(i%100+1)*time.Second)
	}
	if l.inFlight() != 120_000 {
		t.Errorf("%d in flight", l.inFlight())
	}
	l.settle(now.Add(100*time.Second), 2)
	if n := len(l.visible[normalPath]); n != 120_000 || l.inFlight() != 0 {
		t.Errorf("%d visible, %d in flight", n, l.inFlight())
	}
}
