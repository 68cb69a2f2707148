package queue

import (
	"container/heap"
	"time"
)

// timed is embedded in the elements of a timeline. An element is in one timeline at most.
type timed struct {
	at    time.Time
	index int // in the heap, plus 1; 0 if it is in none
}

func (t *timed) entry() *timed { return t }

// timeline contains elements ordered by time.
type timeline[E interface{ entry() *timed }] struct{ all elements[E] }

// set adds an element, or changes its time. A zero time removes it.
func (l *timeline[E]) set(e E, at time.Time) {
	t := e.entry()
	switch {
	case at.IsZero() && t.index > 0:
		heap.Remove(&l.all, t.index-1)
	case at.IsZero():
	case t.index > 0:
		t.at = at
		heap.Fix(&l.all, t.index-1)
	default:
		t.at = at
		heap.Push(&l.all, e)
	}
}

// pop removes and returns the first element if it is due.
func (l *timeline[E]) pop(now time.Time) (e E, ok bool) {
	if len(l.all) == 0 || l.all[0].entry().at.After(now) {
		return e, false
	}
	return heap.Pop(&l.all).(E), true
}

// next returns the time of the first element, or zero.
func (l *timeline[E]) next() time.Time {
	if len(l.all) == 0 {
		return time.Time{}
	}
	return l.all[0].entry().at
}

// elements implements heap.Interface.
type elements[E interface{ entry() *timed }] []E

func (s elements[E]) Len() int           { return len(s) }
func (s elements[E]) Less(i, j int) bool { return s[i].entry().at.Before(s[j].entry().at) }
func (s elements[E]) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].entry().index, s[j].entry().index = i+1, j+1
}

func (s *elements[E]) Push(x any) {
	e := x.(E)
	*s = append(*s, e)
	e.entry().index = len(*s)
}

func (s *elements[E]) Pop() any {
	var none E
	last := len(*s) - 1
	e := (*s)[last]
	(*s)[last], *s = none, (*s)[:last]
	e.entry().index = 0
	return e
}
