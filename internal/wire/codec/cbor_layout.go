package codec

import (
	"slices"

	"github.com/weir-go/weir/shard"
)

// cborLayout is the layout of a record in an answer: its first byte, and its members in order.
// Servers usually use the same layout for all records. The reader therefore predicts that a record
// has the layout of the previous record. If that is true, it reads the record without any lookup.
type cborLayout struct {
	head    byte
	n       int // number of members; 0 if there is no layout
	members [5]field
	odd     bool
}

// add appends the next member. Layouts with unknown, null or repeated members are not used for
// prediction.
func (l *cborLayout) add(f field) {
	if l.odd || f == fieldUnknown || slices.Contains(l.members[:l.n], f) {
		l.odd = true
		return
	}
	l.members[l.n] = f
	l.n++
}

// usable returns l, or the zero layout if records with this layout cannot be predicted.
func (l cborLayout) usable() cborLayout {
	if l.odd || (l.head != cborMap|cborOpen && l.head != cborMap|byte(l.n)) {
		return cborLayout{}
	}
	return l
}

// These are the encoded names of the members.
const (
	cborDataName       = "\x64Data"
	cborKeyName        = "\x6cPartitionKey"
	cborSequenceName   = "\x6eSequenceNumber"
	cborEncryptionName = "\x6eEncryptionType"
	cborNone           = "\x64NONE" // the value of EncryptionType
	cborArrivalHalf    = "\x78\x1bApproximateArr"
	cborArrivalRest    = "ivalTimestamp"
)

// usualDigits is the length of sequence numbers from Kinesis.
const usualDigits = 56

// cborRoom is the number of bytes that must remain at the beginning of a member. Then the member
// can be read without further length checks, except for the contents of strings. The longest member
// is a sequence number of the usual length. Only the last record of an answer can be closer to the
// end, and such a record is read without prediction.
const cborRoom = len(cborSequenceName) + 2 + usualDigits

// read reads the record at b[i:] into r and returns its end. It returns 0 if the record has another
// layout. It returns a negative number if b ends too early to decide. In both cases the contents of
// r are undefined.
//
// A name is compared in one or two machine words. The compiler inlines the comparison, because the
// names are constants. The code checks for usual lengths of values first. The processor can then
// predict the branch and continue before it has loaded the length.
func (l *cborLayout) read(b []byte, i int, r *Record) int {
	switch {
	case l.n == 0:
		return 0
	case i >= len(b):
		return -1
	case b[i] != l.head:
		return 0
	}
	i++
	var (
		values  [fieldEncryption + 1][]byte // of members that are strings
		arrival uint64
	)
	for _, f := range l.members[:l.n] {
		rest := b[i:]
		if len(rest) < cborRoom {
			return -1
		}
		major := byte(cborText)
		switch f {
		case fieldData:
			if string(rest[:len(cborDataName)]) != cborDataName {
				return 0
			}
			i += len(cborDataName)
			major = cborBytes
		case fieldKey:
			if string(rest[:len(cborKeyName)]) != cborKeyName {
				return 0
			}
			i += len(cborKeyName)
		case fieldSequence:
			const name = cborSequenceName
			if string(rest[:len(name)]) != name {
				return 0
			}
			if rest[len(name)] == cborText|24 && rest[len(name)+1] == usualDigits {
				values[f] = rest[len(name)+2 : cborRoom]
				i += cborRoom
				continue
			}
			i += len(name)
		case fieldEncryption:
			const name, end = cborEncryptionName, len(cborEncryptionName) + len(cborNone)
			if string(rest[:len(name)]) != name {
				return 0
			}
			if string(rest[len(name):end]) == cborNone {
				i += end
				continue
			}
			i += len(name)
		case fieldArrival:
			var n int
			if arrival, n = cborArrival(rest); n == 0 {
				return 0
			}
			i += n
			continue
		}
		n, at := cborLength(b, i, major)
		if at == 0 {
			return 0
		}
		if n < 0 || n > len(b)-at {
			return -1
		}
		values[f] = b[at : at+n : at+n]
		i = at + n
	}
	if i = l.close(b, i); i <= 0 {
		return i
	}
	// Assign the fields separately. A single assignment of a Record, which contains pointers, is
	// slower during garbage collection.
	r.Data, r.Key = values[fieldData], text(values[fieldKey])
	r.SequenceNumber, r.Arrival = text(values[fieldSequence]), int64(arrival)
	r.Done, r.Encrypted = shard.Whole, string(values[fieldEncryption]) == kms
	return i
}

// close returns the end of a record whose members end at i. Like read, it returns 0 for another
// layout, and a negative number if b ends too early to decide.
func (l *cborLayout) close(b []byte, i int) int {
	switch {
	case l.head != cborMap|cborOpen:
		return i
	case i >= len(b):
		return -1
	case b[i] != cborBreak:
		return 0
	}
	return i + 1
}

// cborArrival returns the arrival time at the beginning of rest in milliseconds. end is the end of
// the time, or 0 if this function does not support its form. The only supported form is an integer
// of eight bytes. Integers below 1e11 or above maxArrival are not supported.
func cborArrival(rest []byte) (ms uint64, end int) {
	const half, name = len(cborArrivalHalf), len(cborArrivalHalf) + len(cborArrivalRest)
	if string(rest[:half]) != cborArrivalHalf || string(rest[half:name]) != cborArrivalRest {
		return 0, 0
	}
	end = name + 9
	if rest[name] == cborTag|1 {
		end++
	}
	ms = be64(rest[end-8:])
	if rest[end-9] != cborUint|27 || ms < 1e11 || ms > maxArrival {
		return 0, 0
	}
	return ms, end
}

// cborLength returns the length of the string at b[i:], and the index of its contents. The index is
// 0 for any other item, and for a string whose length is indefinite or has eight bytes.
func cborLength(b []byte, i int, major byte) (n, at int) {
	switch head := b[i] ^ major; {
	case head == 24:
		return int(b[i+1]), i + 2
	case head < 24:
		return int(head), i + 1
	case head == 25:
		return be16(b[i+1:]), i + 3
	case head == 26:
		return be32(b[i+1:]), i + 5
	}
	return 0, 0
}
