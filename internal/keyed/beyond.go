package keyed

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/weir-go/weir/internal/source"
)

// The mark of a shard is the position before which all records are done. The owner of a shard can
// store which records after the mark are done, for the next owner. The stored text contains the
// lengths of runs of records, beginning at the mark. Runs of records that are not done alternate
// with runs of records that are done.
//
// A shard does not change. Every reader that starts at the same position therefore counts the same
// records, if it unpacks aggregates in the same way. A hash of the first record verifies the
// position. Records may expire between two pages and are then missing from the count. If that is
// possible, the rest of the text is dropped.

// beyondForm is the first byte of the text. The second byte is the mode in which aggregates are
// unpacked.
const beyondForm = 1

// hashBytes is the number of bytes of the hash of the first record.
const hashBytes = 8

// Beyond encodes which records after the mark are done. It returns "" if no record after the mark
// is done. most is the maximum size of the result in bytes, so records farther away may be missing.
// mode encodes how aggregates are unpacked.
func (s *Span) Beyond(mode byte, most int) string {
	if s.first == nil {
		return ""
	}
	most = base64.RawURLEncoding.DecodedLen(most)
	text := append([]byte{beyondForm, mode}, nameOf(&s.first.records[s.first.at])...)
	fits, run, done := 0, uint64(0), false
	add := func() bool {
		text = binary.AppendUvarint(text, run)
		if done && len(text) <= most {
			fits = len(text)
		}
		return len(text) <= most
	}
	for c := s.first; c != nil; c = c.next {
		for i := c.at; i < len(c.items); i++ {
			if c.items[i].done != done {
				if !add() {
					return encoded(text[:fits])
				}
				run, done = 0, !done
			}
			run++
		}
	}
	add()
	return encoded(text[:fits])
}

func encoded(text []byte) string { return base64.RawURLEncoding.EncodeToString(text) }

// nameOf returns a hash of the place of a record.
func nameOf(r *source.Record) []byte {
	sum := sha256.Sum256([]byte(r.SequenceNumber + "+" + strconv.FormatUint(uint64(r.Done), 10)))
	return sum[:hashBytes]
}

// Known contains which records after a mark are already done. Done must be called for one record
// after the other, in order. The zero Known contains no record.
type Known struct {
	name string // hash of the first record; "" after the record was read
	runs []byte
	left uint64
	done bool
	last int64 // arrival of the last record in Unix milliseconds
}

// Kept is the age up to which no record has expired. A stream keeps its records for at least 24
// hours (CreateStream); the difference is a margin for clocks. A simulation in which records expire
// sooner sets Kept before it starts.
var Kept = 23 * time.Hour

// ParseBeyond decodes the result of Beyond. It returns the zero Known if the text is invalid, or if
// it was written in another mode.
func ParseBeyond(text string, mode byte) Known {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) <= 2+hashBytes || raw[0] != beyondForm || raw[1] != mode {
		return Known{}
	}
	k := Known{name: string(raw[2 : 2+hashBytes]), runs: raw[2+hashBytes:], done: true}
	if !k.next() || k.done { // the first run consists of records that are not done
		return Known{}
	}
	return k
}

// next begins the next run, and reports whether there is one.
func (k *Known) next() bool {
	n, bytes := binary.Uvarint(k.runs)
	if bytes <= 0 || n == 0 {
		*k = Known{}
		return false
	}
	k.runs, k.left, k.done = k.runs[bytes:], n, !k.done
	return true
}

// Over reports whether the rest of the records is unknown.
func (k *Known) Over() bool { return k.left == 0 }

// Page must be called before Done is called for the records of a page. The page must have been read
// before now. If the last record of the previous page may have expired by now, the records after it
// may have expired too. It is then unknown with which record the page begins, so Page drops the
// rest.
func (k *Known) Page(now time.Time) {
	if k.name == "" && now.Sub(time.UnixMilli(k.last)) >= Kept {
		*k = Known{}
	}
}

// Done reports whether the next record is done.
func (k *Known) Done(r *source.Record) bool {
	if k.Over() {
		return false
	}
	if k.name != "" {
		if k.name != string(nameOf(r)) {
			*k = Known{}
			return false
		}
		k.name = ""
	}
	done := k.done
	k.last = r.Arrival
	if k.left--; k.left == 0 {
		k.next()
	}
	return done
}
