package aggregate

import (
	"crypto/md5"
	"errors"
	"math"
)

const (
	magic = "\xf3\x89\x9a\xc2"
	// maxSize is the maximum size of a payload, because offsets have 32 bits. No record in Kinesis
	// is nearly as large.
	maxSize  = math.MaxInt32
	keptRows = 1 << 16 // maximum number of rows of a table that is kept for reuse
)

// These errors explain why a payload that begins like an aggregate is not an aggregate. Such a
// payload must be delivered as a plain record, because user data can begin with the same four
// bytes.
var (
	ErrShort    = errors.New("aggregate: the payload starts like an aggregate but is too short for one")
	ErrChecksum = errors.New("aggregate: the payload starts like an aggregate but its checksum does not match")
	ErrMessage  = errors.New("aggregate: the payload starts like an aggregate and its checksum matches, but the message inside is malformed")
)

// Aggregate is a decoded container payload. The zero value is empty and ready for
// [Aggregate.Parse]. Reuse an Aggregate for the next payload, because it keeps its tables (at most
// about 3 MiB), which avoids allocations. It refers to the payload until the next Parse or Reset.
// Any number of goroutines may read it while none calls Parse, Keep or Reset.
type Aggregate struct {
	msg     []byte
	keys    []span
	hashes  []span
	records []entry
	tags    []tagged   // of records with tags, in order
	runs    []numbered // covers all records, or is empty if none has a number
	fates   []fate     // for each row of keys, then of hashes; only used inside Keep
}

// span is a part of msg.
type span struct{ start, end uint32 }

// entry is a sub-record that refers to parts of msg. Entries and spans contain no pointers, so that
// the garbage collector skips the tables, however long they are.
type entry struct {
	data span
	key  uint32 // row in keys
	hash uint32 // row in hashes, plus 1; 0 if there is none
	sub  uint32
}

// Parse decodes data, which is the payload of one record of a stream. It replaces the contents of
// a.
//
// ok reports whether data is an aggregate. If not, a is empty, and data must be delivered
// unchanged. err is then nil if data does not begin like an aggregate. Otherwise err is [ErrShort],
// [ErrChecksum] or [ErrMessage]; such payloads are worth counting. An aggregate is never decoded in
// part. It may contain no sub-records.
func (a *Aggregate) Parse(data []byte) (ok bool, err error) { return a.parse(data, maxSize) }

// Marked reports whether data begins like an aggregate. If not, [Aggregate.Parse] returns false
// without an error. Marked costs almost nothing.
func Marked(data []byte) bool { return len(data) >= len(magic) && string(data[:len(magic)]) == magic }

func (a *Aggregate) parse(data []byte, limit int) (ok bool, err error) {
	a.Reset()
	if !Marked(data) || len(data) > limit {
		return false, nil
	}
	end := len(data) - md5.Size
	if end <= len(magic) {
		return false, ErrShort
	}
	msg := data[len(magic):end]
	if md5.Sum(msg) != [md5.Size]byte(data[end:]) {
		return false, ErrChecksum
	}
	a.msg = msg
	if !a.parseMessage() {
		a.Reset()
		return false, ErrMessage
	}
	return true, nil
}

// parseMessage fills the tables from msg. It returns false if msg is invalid.
func (a *Aggregate) parseMessage() bool {
	msg := a.msg
	keys, hashes := 0, 0 // number of rows that the records refer to
	var stored []byte    // the numbers of the records
	for p := 0; p < len(msg); {
		tag, next := uint64(msg[p]), p+1
		// This tag has several bytes: an unknown field, or a known field in a longer encoding.
		if tag >= 0x80 {
			if tag, next = uvarint(msg, p); next == 0 {
				return false
			}
		}
		if tag != recordsTag && tag != keyTableTag && tag != hashTableTag {
			if p = skip(msg, next, tag, maxDepth); p == 0 {
				return false
			}
			if tag == numbersTag {
				start, end := chunk(msg, next)
				if stored == nil {
					stored = msg[start:end]
					continue
				}
				stored = append(stored[:len(stored):len(stored)], msg[start:end]...)
			}
			continue
		}
		n, start := short(msg, next)
		if start == 0 {
			if n, start = uvarint(msg, next); start == 0 {
				return false
			}
		}
		if n > uint64(len(msg)-start) {
			return false
		}
		p = start + int(n)
		switch part := (span{uint32(start), uint32(p)}); tag {
		case keyTableTag:
			a.keys = append(a.keys, part)
		case hashTableTag:
			a.hashes = append(a.hashes, part)
		case recordsTag:
			a.records = append(a.records, entry{sub: uint32(len(a.records))})
			e := &a.records[len(a.records)-1]
			tags, sound := e.parse(msg[:p], start)
			if !sound {
				return false
			}
			if tags.end > 0 {
				a.tags = append(a.tags, tagged{e.sub, tags})
			}
			keys, hashes = max(keys, int(e.key)+1), max(hashes, int(e.hash))
		}
	}
	a.parseNumbers(stored)
	// The tables may follow the records, so the indexes can only be checked here.
	return keys <= len(a.keys) && hashes <= len(a.hashes)
}

// parse reads a Record, which begins at p and ends at the end of b. sound is false if the Record is
// invalid. The caller checks later whether the rows to which it refers exist. If a field is
// repeated, the last one counts. tags is the range from the first tag to the end of the last one.
func (e *entry) parse(b []byte, p int) (tags span, sound bool) {
	const none = math.MaxUint64
	key, hash := uint64(none), uint64(0)
	hasHash, hasData := false, false
	for p < len(b) {
		field := p
		tag, next := uint64(b[p]), p+1
		// This tag has several bytes: an unknown field, or a known field in a longer encoding.
		if tag >= 0x80 {
			if tag, next = uvarint(b, p); next == 0 {
				return span{}, false
			}
		}
		if tag != keyIndexTag && tag != hashIndexTag && tag != dataTag {
			if tag == tagsTag && !soundTag(b, next) {
				return span{}, false
			}
			if p = skip(b, next, tag, maxDepth); p == 0 {
				return span{}, false
			}
			if tag == tagsTag {
				if tags.end == 0 {
					tags.start = uint32(field)
				}
				tags.end = uint32(p)
			}
			continue
		}
		value, start := short(b, next)
		if start == 0 {
			if value, start = uvarint(b, next); start == 0 {
				return span{}, false
			}
		}
		p = start
		switch tag {
		case keyIndexTag:
			key = value
		case hashIndexTag:
			hash, hasHash = value, true
		case dataTag:
			if value > uint64(len(b)-start) {
				return span{}, false
			}
			p += int(value)
			e.data, hasData = span{uint32(start), uint32(p)}, true
		}
	}
	// No table has a row maxSize, because a table has fewer rows than its payload has bytes.
	if !hasData || key >= maxSize || hash >= maxSize {
		return span{}, false
	}
	e.key = uint32(key)
	if hasHash {
		e.hash = uint32(hash) + 1
	}
	return tags, true
}

// soundTag reports whether a Tag is well formed. The tag's length is at b[p:]. A message with a
// malformed tag is malformed.
func soundTag(b []byte, p int) bool {
	p, end := chunk(b, p)
	hasKey := false
	for p < end {
		tag, next := uvarint(b[:end], p)
		if next == 0 {
			return false
		}
		hasKey = hasKey || tag == tagKeyTag
		if p = skip(b[:end], next, tag, maxDepth); p == 0 {
			return false
		}
	}
	return hasKey
}

// Reset empties a and drops the reference to the payload.
func (a *Aggregate) Reset() {
	a.msg = nil
	a.keys, a.hashes, a.records, a.tags, a.fates = emptied(a.keys), emptied(a.hashes), emptied(a.records), emptied(a.tags), emptied(a.fates)
	a.runs = emptied(a.runs)
}

func emptied[T any](table []T) []T {
	if cap(table) > keptRows {
		return nil
	}
	return table[:0]
}
