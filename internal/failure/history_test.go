package failure

import (
	"errors"
	"testing"
	"time"
)

// A history concerns one record. Failures of another record do not count.
func TestAHistoryIsOfOneRecord(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(1e9+int64(seconds), 0) }
	first, second := errors.New("first"), errors.New("second")
	type note struct {
		err   error
		done  int
		alone bool
	}
	for _, c := range []struct {
		name  string
		notes []note
		then  func(h *History)
		want  History
	}{
		{"nothing failed", nil, nil, History{}},
		{"a batch failed", []note{{first, 0, false}}, nil, History{Attempts: 1, First: at(0), Latest: at(0), Err: first}},
		{"a batch failed, then its first record alone", []note{{first, 0, false}, {second, 0, true}}, nil,
			History{Attempts: 2, Alone: 1, First: at(0), Suspect: at(1), Latest: at(1), Before: at(0), Err: second}},
		{"a record failed three times", []note{{first, 3, true}, {first, 3, true}, {second, 3, true}}, nil,
			History{Head: 3, Attempts: 3, Alone: 3, First: at(0), Suspect: at(0), Latest: at(2), Before: at(1), Err: second}},
		{"a later record failed", []note{{first, 0, true}, {second, 2, true}}, nil,
			History{Head: 2, Attempts: 1, Alone: 1, First: at(1), Suspect: at(1), Latest: at(1), Err: second}},
		{"the record was handled", []note{{first, 0, true}}, func(h *History) { h.Held = WaitForRoom; h.Reach(1) }, History{Head: 1}},
		{"the record is still the first", []note{{first, 2, true}}, func(h *History) { h.Reach(2) },
			History{Head: 2, Attempts: 1, Alone: 1, First: at(0), Suspect: at(0), Latest: at(0), Err: first}},
		{"the failure was of no record", []note{{first, 2, true}}, func(h *History) { h.Forget() }, History{Head: 2}},
	} {
		var h History
		for i, n := range c.notes {
			h.Note(n.err, n.done, n.alone, at(i))
		}
		if c.then != nil {
			c.then(&h)
		}
		if h != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, h, c.want)
		}
	}
}

// The brake counts a success only if it began after the first failure and after the last failure
// but one.
func TestTheBrakeCountsWhatElseWorked(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(1e9+int64(seconds), 0) }
	for _, c := range []struct {
		name    string
		records int
		h       History
		worked  time.Time
		now     time.Time
		want    Verdict
	}{
		{"the end of a shard fails", 0, History{Attempts: 9, First: at(0)}, at(8), at(9), Verdict{}},
		{"something worked since both failures", 1, History{Attempts: 3, First: at(0), Before: at(5)}, at(6), at(9), Verdict{Do: GiveUp, Records: 1, Reason: "attempts"}},
		{"something worked before the failure before", 1, History{Attempts: 3, First: at(0), Before: at(5)}, at(4), at(9), Verdict{Do: WaitForOthers, Records: 1, Reason: "attempts"}},
		{"nothing worked for long", 1, History{Attempts: 3, First: at(0), Before: at(5)}, time.Time{}, at(120), Verdict{Do: GiveUp, Records: 1, Reason: "attempts"}},
		{"in the middle of a batch", 2, History{Head: 5, Attempts: 3, First: at(0), Before: at(5)}, at(6), at(9), Verdict{Do: GiveUp, From: 5, Records: 2, Reason: "attempts"}},
	} {
		b := Brake{Policy: Policy{On: true, Attempts: 3, Patience: 2 * time.Minute, PerMinute: 60}}
		if got := b.Judge(&c.h, Blame{}, c.records, 0, c.worked, c.now); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	b := Brake{Policy: Policy{On: true, Patience: 2 * time.Minute, PerMinute: 2}}
	b.Works(at(3))
	b.Works(at(1))
	if b.LastWorked() != at(3) {
		t.Errorf("the last call that worked began at %v", b.LastWorked())
	}
	if b.Took(2, at(9)); b.JudgeKiller(at(2), at(9)) != WaitForRoom || b.JudgeKiller(at(2), at(39)) != GiveUp || b.JudgeKiller(at(4), at(39)) != WaitForOthers {
		t.Error("a killer is judged in another way")
	}
}
