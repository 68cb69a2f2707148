package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// record is one stored record. It does not change after it was appended.
type record struct {
	sequence string
	data     []byte
	key      optText
	arrival  int64 // milliseconds
	kms      bool
}

func (r *record) size() int64 { return int64(len(r.data) + len(r.key.V)) }

// child contains the data that a closed shard stores about one of its child shards. The child shard
// may expire earlier or later than its parent.
type child struct {
	id      string
	parents []string
	hashes  hashRange
}

// shard is one shard. records[i] has the index base+i.
type shard struct {
	number  uint32
	id      string
	hashes  hashRange
	parents []string // empty for an initial shard, one after a split, two after a merge
	created time.Time
	closed  time.Time // zero for an open shard
	second  uint64    // second of creation, which its sequence numbers contain

	first, last string // sequence numbers; last is empty while the shard is open
	children    []child

	records   []record
	dead      int // dropped records that the slice's array still contains
	base      uint64
	nextIndex uint64
	bytes     int64
	latest    int64  // milliseconds; later records do not arrive before this time
	trimmed   uint64 // second of arrival of the last dropped record, if any
	limits    shardLimits
	subs      []*Subscription // live subscriptions
}

func shardID(number uint32) string { return fmt.Sprintf("shardId-%012d", number) }

// parseShardID parses the ID of a shard. Like the service it also accepts a number alone, a number
// after any word and a hyphen, and a number without leading zeros.
func parseShardID(id string) (uint32, bool) {
	digits := id
	if parts := strings.Split(id, "-"); len(parts) > 1 && parts[1] != "" {
		digits = parts[1]
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	return uint32(n), err == nil
}

func (sh *shard) isOpen() bool { return sh.closed.IsZero() }

func (sh *shard) close(at time.Time) {
	sh.closed = at
	sh.last = sequence{created: sh.second, index: closingIndex, arrival: max(sh.second, seconds(sh.closed)), shard: sh.number}.String()
	sh.wake()
}

// append adds a record and returns its sequence number. The shard keeps data, so the caller must
// not change it.
func (sh *shard) append(now time.Time, data []byte, key optText, kms bool) string {
	sh.latest = max(sh.latest, now.UnixMilli())
	r := record{
		sequence: sequence{created: sh.second, index: sh.nextIndex, arrival: arrivalSecond(sh.latest), shard: sh.number}.String(),
		data:     data, key: key, arrival: sh.latest, kms: kms,
	}
	sh.nextIndex++
	sh.records = append(sh.records, r)
	sh.bytes += r.size()
	sh.wake()
	return r.sequence
}

// arrivalSecond converts an arrival time in milliseconds to the seconds that a sequence number
// contains.
func arrivalSecond(ms int64) uint64 { return uint64(max(0, ms/1000)) }

// trim drops the records that arrived at horizon or earlier, and returns their size. Pages that
// were read before keep their records.
func (sh *shard) trim(horizon int64) int64 {
	if len(sh.records) == 0 || sh.records[0].arrival > horizon {
		return 0
	}
	n := sh.after(horizon + 1)
	var size int64
	for i := range sh.records[:n] {
		size += sh.records[i].size()
	}
	sh.trimmed = arrivalSecond(sh.records[n-1].arrival)
	// Copy the slice to release the dropped records. The copy waits until half of the array
	// contains dropped records; otherwise a busy shard would copy on each read.
	sh.records = sh.records[n:]
	if sh.dead += n; sh.dead > len(sh.records) {
		sh.records, sh.dead = slices.Clone(sh.records), 0
	}
	sh.base += uint64(n)
	sh.bytes -= size
	return size
}

// after returns the position in records of the first record that arrived at ms or later.
func (sh *shard) after(ms int64) int {
	i, _ := slices.BinarySearchFunc(sh.records, ms, func(r record, ms int64) int { return cmp.Compare(r.arrival, ms) })
	return i
}

// page contains consecutive records, and the position after them.
type page struct {
	records []record
	bytes   int64
	next    uint64 // index of the record after the page
	behind  int64  // milliseconds behind the tip of the shard
	end     bool   // the shard is closed and has no more records
}

// read returns the records that start at an index: at most limit records, and at most maxBytes. If
// a record is available and limit is not 0, it returns at least one. The returned slice is never
// written to again.
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
		// MillisBehindLatest is the age of the last record on the page. It is at least 1, because 0
		// would mean the tip.
		seen := sh.records[max(0, to-1)].arrival
		p.behind = max(1, now.UnixMilli()-seen)
	} else {
		p.end = !sh.isOpen()
	}
	return p
}

// arrived returns the second that the sequence number of an index contains. The index is that of a
// record or of the shard's beginning. known is false for records that were dropped long ago.
func (sh *shard) arrived(index uint64) (second uint64, known bool) {
	switch {
	case index == 0:
		return sh.second, true
	case index >= sh.base && index < sh.nextIndex:
		return arrivalSecond(sh.records[index-sh.base].arrival), true
	case index+1 == sh.base:
		return sh.trimmed, true
	}
	return 0, false
}

// between returns a sequence number between two records: after the record before index, and before
// the record with this index. The number belongs to no record. It increases with time.
func (sh *shard) between(index uint64, now time.Time) string {
	second, _ := sh.arrived(index - 1)
	return sequence{created: sh.second, index: index - 1, arrival: max(second+1, seconds(now)), shard: sh.number}.String()
}

// isPast reports whether between returned s. Such a number is larger than the number of the record
// with the same index.
func (sh *shard) isPast(s sequence) bool {
	second, known := sh.arrived(s.index)
	return known && s.arrival > second
}

// owns returns an error if s cannot be a position in sh.
func (sh *shard) owns(s sequence, text, stream, account, action string) error {
	if s.shard != sh.number {
		return invalid("Invalid StartingSequenceNumber. It encodes %s, while it was used in a call to a shard with %s", encodedShard(s.shard), sh.id)
	}
	if s.created != sh.second {
		return foreign(text, action, sh.id, stream, account)
	}
	if s.index >= sh.nextIndex && (s.index != closingIndex || sh.isOpen()) {
		return invalid("StartingSequenceNumber %s used in %s on shard %s in stream %s under account %s is invalid because it is in the future.", text, action, sh.id, stream, account)
	}
	return nil
}

// encodedShard returns the shard ID that the service reads from a sequence number. The service
// reads the shard's number as a signed number.
func encodedShard(number uint32) string {
	if n := int32(number); n < 0 {
		return fmt.Sprintf("shardId--%011d", -int64(n))
	}
	return shardID(number)
}

func foreign(text, action, shard, stream, account string) error {
	return invalid("StartingSequenceNumber %s used in %s on shard %s in stream %s under account %s is invalid because it did not come from this stream.", text, action, shard, stream, account)
}
