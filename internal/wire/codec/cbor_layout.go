package codec

import (
	"slices"

	"github.com/weir-go/weir/shard"
)

// cborLayout is the layout of the records in an answer: the first byte of each, and its members in
// order. Servers lay out all records alike. A record with the same layout as the previous one is
// read without any lookup.
type cborLayout struct {
	head    byte
	n       int // number of members; 0 for no layout
	members [5]field
	odd     bool
}

// add appends the next member. Records with unknown, null or repeated members are not worth
// predicting.
func (l *cborLayout) add(f field) {
	if l.odd || f == fieldUnknown || slices.Contains(l.members[:l.n], f) {
		l.odd = true
		return
	}
	l.members[l.n] = f
	l.n++
}

// usable returns l, or the zero layout if such records cannot be predicted.
func (l cborLayout) usable() cborLayout {
	if l.odd || (l.head != cborMap|cborOpen && l.head != cborMap|byte(l.n)) {
		return cborLayout{}
	}
	return l
}

// The encoded names of the members.
const (
	cborDataName       = "\x64Data"
	cborKeyName        = "\x6cPartitionKey"
	cborSequenceName   = "\x6eSequenceNumber"
	cborEncryptionName = "\x6eEncryptionType"
	cborNone           = "\x64NONE" // the value of EncryptionType
	cborArrivalHalf    = "\x78\x1bApproximateArr"
	cborArrivalRest    = "ivalTimestamp"
)

// cborRoom is how many bytes must follow a name so that its value can be read without further
// checks: the longest expected head, or a time with its tag. Only the last record of an answer can
// have fewer, and is then read in the general way.
const cborRoom = 10

// usualDigits is the length of the service's sequence numbers.
const usualDigits = 56

// read reads the record at b[i:] into r and returns where it ends. It returns 0 if the record has
// another layout, and a negative number if b ends before that is known. The contents of r are then
// to be overwritten.
//
// Names are compared in at most two words, which the compiler does in place because they are
// constants. Usual lengths of values are checked first: the processor then continues before it has
// read the length.
func (l *cborLayout) read(b []byte, i int, r *Record) int {
	if l.n == 0 {
		return 0
	}
	if i >= len(b) {
		return -1
	}
	if b[i] != l.head {
		return 0
	}
	i++
	var (
		data          []byte
		key, sequence string
		arrival       uint64
		encrypted     bool
	)
	for _, f := range l.members[:l.n] {
		rest := b[i:]
		major := byte(cborText)
		switch f {
		case fieldData:
			const name = cborDataName
			if len(rest) < len(name)+cborRoom {
				return -1
			}
			if string(rest[:len(name)]) != name {
				return 0
			}
			i += len(name)
			major = cborBytes
		case fieldKey:
			const name = cborKeyName
			if len(rest) < len(name)+cborRoom {
				return -1
			}
			if string(rest[:len(name)]) != name {
				return 0
			}
			i += len(name)
		case fieldSequence:
			const name, end = cborSequenceName, len(cborSequenceName) + 2 + usualDigits
			if len(rest) < end {
				return -1
			}
			if string(rest[:len(name)]) != name {
				return 0
			}
			if rest[len(name)] == cborText|24 && rest[len(name)+1] == usualDigits {
				sequence = text(rest[len(name)+2 : end])
				i += end
				continue
			}
			i += len(name)
		case fieldEncryption:
			const name, end = cborEncryptionName, len(cborEncryptionName) + len(cborNone)
			if len(rest) < len(name)+cborRoom {
				return -1
			}
			if string(rest[:len(name)]) != name {
				return 0
			}
			if string(rest[len(name):end]) == cborNone {
				i += end
				continue
			}
			i += len(name)
		case fieldArrival:
			const half, name = len(cborArrivalHalf), len(cborArrivalHalf) + len(cborArrivalRest)
			if len(rest) < name+cborRoom {
				return -1
			}
			if string(rest[:half]) != cborArrivalHalf || string(rest[half:name]) != cborArrivalRest {
				return 0
			}
			end := name + 9
			if rest[name] == cborTag|1 {
				end++
			}
			if rest[end-9] != cborUint|27 {
				return 0
			}
			// Eight bytes are milliseconds, unless the value is absurd.
			if arrival = be64(rest[end-8:]); arrival < 1e11 || arrival > maxArrival {
				return 0
			}
			i += end
			continue
		}
		// A string with its length in front.
		var n int
		switch head := b[i] ^ major; {
		case head == 24:
			n = int(b[i+1])
			i += 2
		case head < 24:
			n = int(head)
			i++
		case head == 25:
			n = be16(b[i+1:])
			i += 3
		case head == 26:
			n = be32(b[i+1:])
			i += 5
		default:
			return 0
		}
		if n < 0 || n > len(b)-i {
			return -1
		}
		switch value := b[i : i+n : i+n]; f {
		case fieldData:
			data = value
		case fieldKey:
			key = text(value)
		case fieldSequence:
			sequence = text(value)
		default:
			encrypted = string(value) == kms
		}
		i += n
	}
	if l.head == cborMap|cborOpen {
		if i >= len(b) {
			return -1
		}
		if b[i] != cborBreak {
			return 0
		}
		i++
	}
	// Not as one assignment: during garbage collection that is slower because of the pointers.
	r.Data, r.Key, r.SequenceNumber = data, key, sequence
	r.Arrival, r.Done, r.Encrypted = int64(arrival), shard.Whole, encrypted
	return i
}
