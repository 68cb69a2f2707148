package producer

import (
	"math/bits"

	"github.com/weir-go/weir/shard"
)

// list is a sequence of records, sorted by number. The records are in an array, because walking
// through linked records waits for memory at each of them.
type list struct {
	items    []item // the first record is at head; places before it are empty
	head     int
	n, bytes int
}

// item is a record in a list.
type item struct {
	record *Pending
	key    uint64 // keyOf(record.hash)
}

// keyOf condenses a hash key. Different keys may rarely have the same result.
func keyOf(k shard.HashKey) uint64 { return k.Lo ^ bits.RotateLeft64(k.Hi*0x9E3779B97F4A7C15, 32) }

// firstItems is the capacity of a list with its first record.
const firstItems = 32

// spareItems limits the memory that an empty list keeps.
const spareItems = 4096

// first returns the first record, or nil.
func (l *list) first() *Pending {
	if l.n == 0 {
		return nil
	}
	return l.items[l.head].record
}

// push appends a record.
func (l *list) push(p *Pending) {
	if len(l.items) == cap(l.items) && l.head > len(l.items)/2 {
		n := copy(l.items, l.items[l.head:])
		clear(l.items[n:])
		l.items, l.head = l.items[:n], 0
	}
	if l.items == nil {
		l.items = make([]item, 0, firstItems)
	}
	l.items = append(l.items, item{p, keyOf(p.hash)})
	l.n++
	l.bytes += p.size()
}

// pop removes the first record.
func (l *list) pop() *Pending {
	p := l.remove(l.head)
	l.closeGaps(l.head + 1)
	return p
}

// remove removes the record at a place of items, and leaves a gap. The caller closes all gaps
// before it uses another method.
func (l *list) remove(at int) *Pending {
	p := l.items[at].record
	l.items[at].record = nil
	l.n--
	l.bytes -= p.size()
	return p
}

// closeGaps moves the records before a place of items together. There is no gap after that place.
func (l *list) closeGaps(end int) {
	to := end
	for at := end - 1; at >= l.head; at-- {
		if it := l.items[at]; it.record != nil {
			to--
			l.items[at].record = nil
			l.items[to] = it
		}
	}
	if l.head = to; l.n > 0 {
		return
	}
	l.items, l.head = l.items[:0], 0
	if cap(l.items) > spareItems {
		l.items = nil
	}
}

// merge adds records, which are sorted by number.
func (l *list) merge(records []*Pending) {
	if len(records) == 0 {
		return
	}
	old := l.items[l.head:]
	at := l.head - len(records)
	if at < 0 || l.n > 0 && records[len(records)-1].number > old[0].record.number {
		merged := list{items: make([]item, 0, l.n+len(records))}
		for _, p := range records {
			for len(old) > 0 && old[0].record.number < p.number {
				merged.push(old[0].record)
				old = old[1:]
			}
			merged.push(p)
		}
		for _, it := range old {
			merged.push(it.record)
		}
		*l = merged
		return
	}
	l.head = at // the usual case: they were taken from there
	l.n += len(records)
	for i, p := range records {
		l.items[at+i] = item{p, keyOf(p.hash)}
		l.bytes += p.size()
	}
}

// keySet is a set of condensed keys that is emptied without touching its memory.
type keySet struct {
	slots []keySlot
	round uint64
	n     int
}

type keySlot struct{ key, round uint64 }

const keyBits = 12 // so that scanned keys fill half of the slots

// reset empties the set.
func (s *keySet) reset() {
	if s.slots == nil {
		s.slots = make([]keySlot, 1<<keyBits)
	}
	s.round++
	s.n = 0
}

// add adds a key, and reports whether it was in the set before.
func (s *keySet) add(key uint64) bool {
	for at := key >> (64 - keyBits); ; at = (at + 1) % (1 << keyBits) {
		switch slot := &s.slots[at]; {
		case slot.round != s.round:
			*slot = keySlot{key, s.round}
			s.n++
			return false
		case slot.key == key:
			return true
		}
	}
}
