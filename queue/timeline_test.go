package queue

import (
	"testing"
	"time"
)

type stop struct {
	timed
	name string
}

func TestATimelineIsInOrder(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	var l timeline[*stop]
	a, b, c := &stop{name: "a"}, &stop{name: "b"}, &stop{name: "c"}
	l.set(a, at.Add(3*time.Second))
	l.set(b, at.Add(time.Second))
	l.set(c, at.Add(2*time.Second))
	l.set(b, at.Add(5*time.Second)) // it moves
	l.set(a, time.Time{})           // it leaves
	l.set(a, time.Time{})
	if !l.next().Equal(at.Add(2 * time.Second)) {
		t.Errorf("next is %v", l.next())
	}
	if _, ok := l.pop(at.Add(time.Second)); ok {
		t.Error("nothing is due")
	}
	for _, want := range []*stop{c, b} {
		if got, ok := l.pop(at.Add(time.Minute)); !ok || got != want || got.index != 0 {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if !l.next().IsZero() {
		t.Error("elements are left")
	}
}
