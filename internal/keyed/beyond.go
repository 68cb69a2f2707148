package keyed

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/weir-go/weir/internal/source"
)

// The records that are done beyond the mark can go with it to the next owner of the shard, as a
// text: the lengths of the runs of records that are not done and that are done, in turn, starting
// at the mark. A shard does not change, so every reader that starts at the same position counts the
// same records, if it unpacks aggregates in the same way. A hash of the first record checks that
// the position is the same. Records that expire between two pages are missing from the count, so
// the rest of the text is dropped where that is possible.

// beyondForm is the first byte of the text. The second one says what is made of aggregates.
const beyondForm = 1

// hashBytes are those of the hash of the first record.
const hashBytes = 8

// Beyond encodes which records beyond the mark are done, "" if there are none. It has at most most
// bytes: records farther away are left out. mode encodes how aggregates are unpacked.
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

// nameOf is a hash of where a record is.
func nameOf(r *source.Record) []byte {
	sum := sha256.Sum256([]byte(r.SequenceNumber + "+" + strconv.FormatUint(uint64(r.Done), 10)))
	return sum[:hashBytes]
}

// Known returns, for one record after the other behind a mark, which are done. The zero Known has
// none.
type Known struct {
	name string // of the first record, until it was seen
	runs []byte
	left uint64
	done bool
	last int64 // arrival of the last record, in milliseconds of Unix time
}

// Kept is the age up to which no record has expired. A stream keeps its records for 24 hours at
// least (CreateStream); the rest is a margin for clocks. A simulation in which records expire
// sooner changes it before it starts.
var Kept = 23 * time.Hour

// ParseBeyond decodes a text of Beyond. The result has no record if the text is invalid, or if
// aggregates are unpacked in another way now.
func ParseBeyond(text string, mode byte) Known {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) <= 2+hashBytes || raw[0] != beyondForm || raw[1] != mode {
		return Known{}
	}
	k := Known{name: string(raw[2 : 2+hashBytes]), runs: raw[2+hashBytes:], done: true}
	if !k.next() || k.done { // the first run is of records that are not done
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

// Over reports whether it knows nothing of what follows.
func (k *Known) Over() bool { return k.left == 0 }

// Page is called before the records of each page, which was read before now. If the last record of
// the previous page may have expired by then, so may the next ones, and it is unknown which record
// the page begins with. The rest is then dropped.
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
