package keyed

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"

	"github.com/weir-go/weir/internal/source"
)

// What is done beyond the mark can go along with it to the next owner of the shard, as a text: the
// lengths of the runs of records that are not done and of those that are, in turn, from the mark
// on. A shard does not change, so whoever reads it from the same place counts the same records, if
// what is made of aggregates is the same. That it is the same place is held against a hash of the
// first record.

// beyondForm is the first byte of the text. The second one says what is made of aggregates.
const beyondForm = 1

// hashBytes are those of the hash of the first record.
const hashBytes = 8

// Beyond is what is done beyond the mark, "" if nothing is. It is most bytes long at most: what is
// farther away and does not fit is left out. mode stands for what is made of aggregates.
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

// Known tells of the records that follow a mark, one after the other, which are done. The zero
// Known knows of none.
type Known struct {
	name string // of the first record, until it was seen
	runs []byte
	left uint64
	done bool
}

// ParseBeyond reads what Beyond wrote. It knows of no record when the text is none that Beyond
// writes, or when other things are made of aggregates now.
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
	if k.left--; k.left == 0 {
		k.next()
	}
	return done
}
