// Package keyed handles the partition keys of a shard in parallel.
//
// A [Span] keeps what was read: it knows which records may be handled now, and before which
// position everything is done. It locks nothing. A [Runner] hands the records of a span to the
// user's code, which it calls through its [Host]. [Slots] bound the calls of a process.
package keyed

import (
	"hash/maphash"
	"slices"

	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// Span is the part of a shard from the first record that is not done to the last one that was
// added. The records of a partition key are in one lane, in order, and at most one call has some.
// Each record without a key has a separate lane.
//
// One slot is reserved for the lane of the oldest record, so the record that all others wait for
// waits at most for running calls. Calls that wait for it have no slot, see Rest.
type Span struct {
	bound int // calls at a time
	most  int // records of a call
	// MostBytes bounds the data of a call's records. A single record may be larger. 0 is no bound.
	MostBytes int
	seed      maphash.Seed
	ready     queue // lanes that may begin
	*arena          // with the lanes of keys; two keys of one hash share one

	first, last *chunk
	length      int // records from the first that is not done on
	bytes       int // of all chunks
	works       int // lanes at work
	live        int // lanes
	upTo        shard.Position
	moved       bool // since Mark was asked
	mark        shard.Position
}

// Lane has the records of one key that are not done.
type Lane struct {
	Records []source.Record // that a call has: not to be changed, and valid until Return
	call    *Call           // nil if no call has them

	hash         uint64
	alone        bool  // of one record, without a key
	gathered     bool  // Records are in a separate slice
	works        bool  // a call is at Records
	queued       bool  // in the queue of those that may begin
	taken, till  *item // the first of Records that is not done; the last of Records, or nil
	head, tail   *item // the items that follow
	before, next *Lane // in a list
	other        *Lane // in the table
}

// item is one record.
type item struct {
	next *item // of the lane
	lane *Lane
	of   *chunk
	at   int32 // its index there
	done bool
}

func (i *item) record() *source.Record { return &i.of.records[i.at] }

// chunk is the records that were added together.
type chunk struct {
	records []source.Record
	items   []item
	at      int            // the first that is not done
	upTo    shard.Position // everything before that is done with the chunk
	bytes   int
	since   mono.Time
	next    *chunk
}

// NewSpan makes an empty span. At most bound calls may have records at a time, most records each.
func NewSpan(bound, most int) *Span {
	return &Span{bound: bound, most: most, seed: maphash.MakeSeed(), arena: arenas.Get().(*arena)}
}

// Add adds records that follow those before. They must not change as long as the span has them. If
// upTo is not zero, everything before it is done when they are: other records there were dropped.
// Records that are done according to known, which may be nil, are skipped. Add returns their
// number.
func (s *Span) Add(records []source.Record, bytes int, upTo shard.Position, now mono.Time, known *Known) (skipped int) {
	c := &chunk{records: records, items: make([]item, len(records)), upTo: upTo, bytes: bytes, since: now}
	if s.last == nil {
		s.first = c
	} else {
		s.last.next = c
	}
	s.last = c
	s.length += len(records)
	s.bytes += bytes
	for i := range records {
		it := &c.items[i]
		if known != nil && known.Done(&records[i]) {
			*it = item{of: c, at: int32(i), done: true}
			skipped++
			continue
		}
		l := s.lane(records[i].Key)
		*it = item{lane: l, of: c, at: int32(i)}
		if l.tail == nil {
			l.head = it
		} else {
			l.tail.next = it
		}
		l.tail = it
		if l.till == nil && !l.queued {
			s.enqueue(l)
		}
	}
	if skipped > 0 && c == s.first {
		s.pass(c)
	}
	s.pop()
	return skipped
}

// pass advances to the first record of a chunk that is not done.
func (s *Span) pass(c *chunk) {
	for c.at < len(c.items) && c.items[c.at].done {
		c.at++
		s.length--
		s.moved = true
	}
}

// lane is that of a key.
func (s *Span) lane(key string) *Lane {
	if key == "" {
		l := s.open()
		l.alone = true
		return l
	}
	hash := maphash.String(s.seed, key)
	l := s.lanes.find(hash)
	if l == nil {
		l = s.open()
		l.hash = hash
		s.lanes.add(l)
	}
	return l
}

func (s *Span) open() *Lane {
	s.live++
	if s.spare == nil {
		some := make([]Lane, min(max(s.live, 4), 64))
		for i := range some {
			some[i].next = s.spare
			s.spare = &some[i]
		}
	}
	l := s.spare
	s.spare, l.next = l.next, nil
	return l
}

// MayBegin returns the lane whose records may be handled now, or nil. oldest is true if it has the
// oldest record.
func (s *Span) MayBegin() (l *Lane, oldest bool) {
	if s.first == nil {
		return nil, false
	}
	first := s.first.items[s.first.at].lane
	if first.queued {
		if s.works >= s.bound {
			return nil, false
		}
		return first, true
	}
	others := s.works
	if first.works {
		others--
	}
	if others >= s.bound-1 {
		return nil, false
	}
	return s.ready.first, false
}

// Begin has a call begin with a lane that MayBegin returned: with Records.
func (s *Span) Begin(l *Lane) {
	s.ready.remove(l)
	s.works++
	l.queued, l.works = false, true
	if l.till != nil { // after Pause
		return
	}
	l.taken, l.till = l.head, l.head
	n, together, key, bytes := 1, true, l.head.record().Key, len(l.head.record().Data)
	for it := l.head.next; it != nil && n < s.most && it.record().Key == key; it = it.next {
		if bytes += len(it.record().Data); s.MostBytes > 0 && bytes > s.MostBytes {
			break
		}
		together = together && it.of == l.till.of && it.at == l.till.at+1
		l.till = it
		n++
	}
	if l.head = l.till.next; l.head == nil {
		l.tail = nil
	}
	if c, at := l.taken.of, int(l.taken.at); together {
		l.Records = c.records[at : at+n : at+n]
		return
	}
	l.gathered = true
	if last := len(s.gathered) - 1; last >= 0 {
		l.Records, s.gathered = s.gathered[last], s.gathered[:last]
	}
	l.Records = slices.Grow(l.Records, n)
	for it := l.taken; len(l.Records) < n; it = it.next {
		l.Records = append(l.Records, *it.record())
	}
}

// Done notes that n more of a lane's Records are done, the first that were not.
func (s *Span) Done(l *Lane, n int) {
	for range n {
		it := l.taken
		it.done = true
		l.taken = it.next
		if it == l.till {
			l.taken = nil
		}
		c := it.of
		if c == s.first && int(it.at) == c.at {
			s.pass(c)
		}
	}
	s.pop()
}

// Rest notes that the call at a lane waits for older records to be done; until Work others may
// begin in its place.
func (s *Span) Rest() { s.works-- }

// Work notes that a call that rested continues.
func (s *Span) Work() { s.works++ }

// Pause notes that no call is at the lane's Records until Resume.
func (s *Span) Pause(l *Lane) {
	s.works--
	l.works = false
}

// Resume has the lane's Records be handled again.
func (s *Span) Resume(l *Lane) { s.enqueue(l) }

func (s *Span) enqueue(l *Lane) {
	l.queued = true
	s.ready.push(l)
}

// Return notes that the lane's Records are done, and the call over.
func (s *Span) Return(l *Lane) {
	s.works--
	if l.gathered {
		clear(l.Records) // they must not keep what they were read from
		s.gathered = append(s.gathered, l.Records[:0])
		l.gathered = false
	}
	if l.head != nil {
		l.works, l.taken, l.till, l.Records, l.call = false, nil, nil, nil, nil
		s.enqueue(l)
		return
	}
	if !l.alone {
		s.lanes.remove(l)
	}
	s.live--
	*l = Lane{next: s.spare}
	s.spare = l
}

// pop lets go of chunks that are done.
func (s *Span) pop() {
	for c := s.first; c != nil && c.at == len(c.items); c = s.first {
		switch n := len(c.records); {
		case !c.upTo.IsZero():
			s.upTo = c.upTo
		case n > 0:
			s.upTo = c.records[n-1].After()
		}
		s.moved = true
		s.bytes -= c.bytes
		if s.first = c.next; s.first == nil {
			s.last = nil
			return
		}
		s.pass(s.first)
	}
}

// Mark is the position before which everything is done; zero before anything is.
func (s *Span) Mark() shard.Position {
	if s.moved {
		s.moved = false
		s.mark = s.upTo
		if c := s.first; c != nil && c.at > 0 {
			s.mark = c.records[c.at-1].After()
		}
	}
	return s.mark
}

// Len is how many records there are from the oldest that is not done on, done or not. Should the
// worker end now, that many are handled again at most.
func (s *Span) Len() int { return s.length }

// Bytes is the size of what is kept.
func (s *Span) Bytes() int { return s.bytes }

// Lanes is how many keys have records that are not done, and how many of them are at work.
func (s *Span) Lanes() (live, works int) { return s.live, s.works }

// Oldest is the oldest record that is not done, its lane, and when it was added; nil if all is
// done.
func (s *Span) Oldest() (*source.Record, *Lane, mono.Time) {
	c := s.first
	if c == nil {
		return nil, nil, 0
	}
	it := &c.items[c.at]
	return it.record(), it.lane, c.since
}
