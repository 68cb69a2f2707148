package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// record is one record, never changed after it was appended.
type record struct {
	sequence string
	data     []byte
	key      optText
	arrival  int64 // milliseconds
	kms      bool
}

func (r *record) size() int64 { return int64(len(r.data) + len(r.key.V)) }

// child is what a closed shard remembers of those that follow it, which may
// outlive neither.
type child struct {
	id      string
	parents []string
	hashes  hashRange
}

// shard is one shard. Record i of it has index base+i.
type shard struct {
	number  uint32
	id      string
	hashes  hashRange
	parents []string // none, one after a split, two after a merge
	created time.Time
	closed  time.Time // zero while the shard is open
	second  uint64    // of creation, as its sequence numbers tell it

	first, last string // sequence numbers; last is empty while the shard is open
	children    []child

	records   []record
	dead      int // records in front of the slice that its array still holds
	base      uint64
	nextIndex uint64
	bytes     int64
	latest    int64 // no record arrives before this millisecond
	limits    shardLimits
}

func shardID(number uint32) string { return fmt.Sprintf("shardId-%012d", number) }

// parseShardID accepts the form that shardID makes.
func parseShardID(id string) (uint32, bool) {
	digits, ok := strings.CutPrefix(id, "shardId-")
	if !ok || len(digits) != 12 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	return uint32(n), err == nil
}

func (sh *shard) isOpen() bool { return sh.closed.IsZero() }

func (sh *shard) close(at time.Time) {
	sh.closed = at
	sh.last = sequence{created: sh.second, index: closingIndex, arrival: max(sh.second, seconds(sh.closed)), shard: sh.number}.String()
}

// append adds a record and returns its sequence number. data is kept.
func (sh *shard) append(now time.Time, data []byte, key optText, kms bool) string {
	sh.latest = max(sh.latest, now.UnixMilli())
	r := record{
		sequence: sequence{created: sh.second, index: sh.nextIndex, arrival: uint64(max(0, sh.latest/1000)), shard: sh.number}.String(),
		data:     data, key: key, arrival: sh.latest, kms: kms,
	}
	sh.nextIndex++
	sh.records = append(sh.records, r)
	sh.bytes += r.size()
	return r.sequence
}

// trim drops the records that arrived at or before a time and returns their
// size. Pages that were handed out keep theirs.
func (sh *shard) trim(horizon int64) int64 {
	if len(sh.records) == 0 || sh.records[0].arrival > horizon {
		return 0
	}
	n := sh.after(horizon + 1)
	var size int64
	for i := range sh.records[:n] {
		size += sh.records[i].size()
	}
	// A copy lets go of the dropped ones. Half of the records being dead is
	// waited for, or else a busy shard would copy itself at each look.
	sh.records = sh.records[n:]
	if sh.dead += n; sh.dead > len(sh.records) {
		sh.records, sh.dead = slices.Clone(sh.records), 0
	}
	sh.base += uint64(n)
	sh.bytes -= size
	return size
}

// after is the place of the first record that arrived at or after a time.
func (sh *shard) after(ms int64) int {
	i, _ := slices.BinarySearchFunc(sh.records, ms, func(r record, ms int64) int { return cmp.Compare(r.arrival, ms) })
	return i
}

// page is a run of records and what follows it.
type page struct {
	records []record
	bytes   int64
	next    uint64 // index of the record after the page
	behind  int64  // milliseconds behind the tip
	end     bool   // the shard is closed and has no more
}

// read returns the records from an index on, at most limit of them and at most
// maxBytes, but one if there is one. The slice is never written to again.
func (sh *shard) read(now time.Time, index uint64, limit int, maxBytes int64) page {
	index = min(max(index, sh.base), sh.nextIndex)
	from := int(index - sh.base)
	p := page{next: index}
	to := from
	for to < len(sh.records) && to-from < limit {
		size := sh.records[to].size()
		if p.bytes+size > maxBytes && to > from {
			break
		}
		p.bytes += size
		to++
	}
	p.records = sh.records[from:to:to]
	p.next += uint64(to - from)
	if p.next < sh.nextIndex {
		// Behind by the age of what was read; never 0, which would mean the tip.
		seen := sh.records[max(0, to-1)].arrival
		p.behind = max(1, now.UnixMilli()-seen)
	} else {
		p.end = !sh.isOpen()
	}
	return p
}

// owns tells why a sequence number cannot be a position in sh, or nil.
func (sh *shard) owns(s sequence, text, stream string) error {
	if s.shard != sh.number {
		return invalid("Invalid StartingSequenceNumber. It encodes %s, while it was used in a call to a shard with %s", shardID(s.shard), sh.id)
	}
	if s.created != sh.second {
		return invalid("StartingSequenceNumber %s used in GetShardIterator on shard %s in stream %s is invalid because it did not come from this stream.", text, sh.id, stream)
	}
	if s.index >= sh.nextIndex && (s.index != closingIndex || sh.isOpen()) {
		return invalid("StartingSequenceNumber %s used in GetShardIterator on shard %s in stream %s is invalid because it is in the future.", text, sh.id, stream)
	}
	return nil
}
