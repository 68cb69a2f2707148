package keyed

import (
	"sync"

	"github.com/weir-go/weir/internal/source"
)

// table maps hashes of keys to lanes, in lists. A map would cost about three times as much, because
// with many keys a lane is added and removed for nearly every record.
type table struct {
	lists []*Lane // the number of lists is a power of two; linked by Lane.other
	n     int     // number of lanes
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

// add adds a lane. The table must not contain a lane with the same hash.
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

// remove removes a lane that the table contains.
func (t *table) remove(l *Lane) {
	at := t.list(l.hash)
	for *at != l {
		at = &(*at).other
	}
	*at, l.other = l.other, nil
	t.n--
}

// arena is memory of a span that another span can reuse. It contains no records.
type arena struct {
	lanes    table
	spare    *Lane             // a list of unused lanes
	gathered [][]source.Record // slices for Records of lanes
}

// arenas is a pool of arenas. A shard that only sometimes has something to handle makes a new span
// each time.
var arenas = sync.Pool{New: func() any { return new(arena) }}

// Close releases the span's memory for reuse, unless the span has lanes. Nothing may be added
// afterwards.
func (s *Span) Close() {
	if s.live == 0 && s.arena != nil {
		arenas.Put(s.arena)
		s.arena = nil
	}
}

// queue is a list of lanes. Any lane can be removed from it.
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
