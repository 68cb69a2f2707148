package keyed

import (
	"sync"

	"github.com/weir-go/weir/internal/source"
)

// table has lanes by the hash of their keys, in lists. A map would cost some three times as much:
// with many keys a lane comes and goes with nearly every record.
type table struct {
	lists []*Lane // as many as a power of two; linked by Lane.other
	n     int     // lanes
}

func (t *table) list(hash uint64) **Lane { return &t.lists[hash&uint64(len(t.lists)-1)] }

// find returns the lane of a hash, or nil.
func (t *table) find(hash uint64) *Lane {
	if t.n == 0 {
		return nil
	}
	l := *t.list(hash)
	for l != nil && l.hash != hash {
		l = l.other
	}
	return l
}

// add adds a lane of a hash that has none.
func (t *table) add(l *Lane) {
	if 2*t.n >= len(t.lists) {
		before := t.lists
		t.lists = make([]*Lane, max(4*t.n, 16))
		for _, l := range before {
			for l != nil {
				next := l.other
				t.put(l)
				l = next
			}
		}
	}
	t.put(l)
	t.n++
}

func (t *table) put(l *Lane) {
	at := t.list(l.hash)
	l.other, *at = *at, l
}

// remove removes a lane that is there.
func (t *table) remove(l *Lane) {
	at := t.list(l.hash)
	for *at != l {
		at = &(*at).other
	}
	*at, l.other = l.other, nil
	t.n--
}

// arena is memory of a span that the next one can use again. It has no records.
type arena struct {
	lanes    table
	spare    *Lane             // a list of those that are not used
	gathered [][]source.Record // slices for Records of lanes
}

// arenas are of spans that were closed: a shard that has something to handle now and then makes a
// span each time.
var arenas = sync.Pool{New: func() any { return new(arena) }}

// Close lets others use what the span needs, unless it has lanes. Nothing may be added to it then.
func (s *Span) Close() {
	if s.live == 0 && s.arena != nil {
		arenas.Put(s.arena)
		s.arena = nil
	}
}

// queue is a list of lanes from which any lane can be removed.
type queue struct{ first, last *Lane }

func (q *queue) push(l *Lane) {
	l.before = q.last
	if q.last == nil {
		q.first = l
	} else {
		q.last.next = l
	}
	q.last = l
}

func (q *queue) remove(l *Lane) {
	if l.before == nil {
		q.first = l.next
	} else {
		l.before.next = l.next
	}
	if l.next == nil {
		q.last = l.before
	} else {
		l.next.before = l.before
	}
	l.before, l.next = nil, nil
}
