// Package keyed handles the partition keys of a shard in parallel.
//
// A [Span] contains the records that were read. It determines which records may be handled now, and
// before which position everything is done. It uses no locks. A [Runner] passes the records of a
// span to user code, which it calls through its [Host]. [Slots] limit the number of concurrent
// calls of a process.
package keyed

import (
	"hash/maphash"
	"slices"

	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// Span is the part of a shard from the first record that is not done to the last record that was
// added. The records of a partition key are in one lane, in order. At most one call has records of
// a lane. Without partitions, each record without a key has its own lane.
//
// One slot is reserved for the lane of the oldest record. The record that all others wait for
// therefore waits only for running calls. Calls that wait for the oldest record have no slot, see
// Rest.
type Span struct {
	bound int // maximum number of concurrent calls
	most  int // maximum number of records of a call
	// MostBytes is the maximum size of a call's data. A single record may be larger. 0 means no
	// limit.
	MostBytes int
	// Partitions is the number of partitions into which the keys are divided. A lane then has the
	// records of a partition, and a call can have records of several keys. With 0, a lane has the
	// records of one key.
	Partitions int
	seed       maphash.Seed
	ready      queue // lanes that may begin
	*arena           // contains the lanes of keys; keys with the same hash share a lane

	first, last *chunk
	length      int // number of records from the first that is not done
	bytes       int // size of all chunks
	works       int // number of lanes with a running call
	live        int // number of lanes
	upTo        shard.Position
	moved       bool // upTo has changed since the last call of Mark
	mark        shard.Position
}

// Lane contains the records of one key, of keys with the same hash, or of one partition of the
// keys, that are not done.
type Lane struct {
	Records []source.Record // of a call; they must not be changed and are valid until Return
	call    *Call           // nil if no call has Records

	hash         uint64
	alone        bool  // the lane has a single record without a key
	gathered     bool  // Records are in a separate slice
	works        bool  // a call handles Records
	queued       bool  // the lane is in the queue of lanes that may begin
	taken, till  *item // the first of Records that is not done; the last of Records, or nil
	head, tail   *item // the items after Records
	before, next *Lane // neighbours in a list
	other        *Lane // the next lane in the table
}

// item is one record.
type item struct {
	next *item // the next item of the lane
	lane *Lane
	of   *chunk
	at   int32 // index in the chunk
	done bool
}

func (i *item) record() *source.Record { return &i.of.records[i.at] }

// chunk contains records that were added together.
type chunk struct {
	records []source.Record
	items   []item
	at      int            // index of the first record that is not done
	upTo    shard.Position // everything before upTo is done when the chunk is done
	bytes   int
	since   mono.Time
	next    *chunk
}

// NewSpan returns an empty span. bound is the maximum number of concurrent calls. most is the
// maximum number of records of a call.
func NewSpan(bound, most int) *Span {
	return &Span{bound: bound, most: most, seed: maphash.MakeSeed(), arena: arenas.Get().(*arena)}
}

// Add adds records that follow the previous ones. They must not change as long as the span contains
// them. If upTo is not zero, everything before it is done when these records are done, because
// other records before it were dropped. Add skips records that are done according to known, and
// returns their number. known may be nil.
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

// lane returns the lane of a key.
func (s *Span) lane(key string) *Lane {
	if key == "" && s.Partitions == 0 {
		l := s.open()
		l.alone = true
		return l
	}
	hash := uint64(shard.Partition(key, s.Partitions))
	if s.Partitions == 0 {
		hash = maphash.String(s.seed, key)
	}
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

// MayBegin returns a lane whose records may be handled now, or nil. oldest is true if the lane
// contains the oldest record.
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

// Begin sets Records of a lane that MayBegin returned, and marks the lane as handled by a call.
func (s *Span) Begin(l *Lane) {
	s.ready.remove(l)
	s.works++
	l.queued, l.works = false, true
	if l.till != nil { // after Pause
		return
	}
	l.taken, l.till = l.head, l.head
	n, together, key, bytes := 1, true, l.head.record().Key, len(l.head.record().Data)
	for it := l.head.next; it != nil && n < s.most && (s.Partitions > 0 || it.record().Key == key); it = it.next {
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

// Done records that the next n of a lane's Records are done.
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

// Rest records that the call of a lane waits for older records. Until Work, another lane may begin
// in its place.
func (s *Span) Rest() { s.works-- }

// Work records that a call continues after Rest.
func (s *Span) Work() { s.works++ }

// Pause notes that the call of a lane has stopped. No call handles the lane's Records until Resume.
func (s *Span) Pause(l *Lane) {
	s.works--
	l.works = false
}

// Resume makes the lane's Records available to a call again.
func (s *Span) Resume(l *Lane) { s.enqueue(l) }

func (s *Span) enqueue(l *Lane) {
	l.queued = true
	s.ready.push(l)
}

// Return records that the lane's Records are done and its call is over.
func (s *Span) Return(l *Lane) {
	s.works--
	if l.gathered {
		clear(l.Records) // the slice must not keep the memory of the records' pages
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

// pop removes chunks that are done.
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

// Mark returns the position before which everything is done. It is zero as long as no record is
// done.
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

// Len returns the number of records from the oldest one that is not done, including done records
// after it. This is the maximum number of records that are handled again if the worker ends now.
func (s *Span) Len() int { return s.length }

// Bytes returns the size of the chunks in memory.
func (s *Span) Bytes() int { return s.bytes }

// Lanes returns the number of lanes, and the number of lanes with a running call.
func (s *Span) Lanes() (live, works int) { return s.live, s.works }

// Oldest returns the oldest record that is not done, its lane, and when it was added. It returns
// nil if all records are done.
func (s *Span) Oldest() (*source.Record, *Lane, mono.Time) {
	c := s.first
	if c == nil {
		return nil, nil, 0
	}
	it := &c.items[c.at]
	return it.record(), it.lane, c.since
}
