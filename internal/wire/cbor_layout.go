package wire

import "slices"

// cborLayout is how the records of an answer are laid out: the first byte of each, and its members in order. Servers lay
// all of them out alike, so a record that looks like one before it is read without looking anything up.
type cborLayout struct {
	head    byte
	n       int // of members; 0 for a layout that no record has
	members [5]field
	odd     bool
}

// add notes the next member. A record with members that are unknown, null or there twice is not worth predicting.
func (l *cborLayout) add(f field) {
	if l.odd || f == fieldUnknown || slices.Contains(l.members[:l.n], f) {
		l.odd = true
		return
	}
	l.members[l.n] = f
	l.n++
}

// usable is l, or the zero layout if records like this cannot be predicted.
func (l cborLayout) usable() cborLayout {
	if l.odd || (l.head != cborMap|cborOpen && l.head != cborMap|byte(l.n)) {
		return cborLayout{}
	}
	return l
}

// The members as they stand in an answer.
const (
	cborDataName       = "\x64Data"
	cborKeyName        = "\x6cPartitionKey"
	cborSequenceName   = "\x6eSequenceNumber"
	cborEncryptionName = "\x6eEncryptionType"
	cborArrivalName    = "\x78\x1bApproximateArrivalTimestamp"
)

// read reads the record at b[i:] into r and returns where it ends, or 0 if it is not laid out so; r is as it was then.
func (l *cborLayout) read(b []byte, i int, r *Record) int {
	if l.n == 0 || i >= len(b) || b[i] != l.head {
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
		switch f {
		case fieldData:
			const name = cborDataName
			if len(b)-i < len(name) || string(b[i:i+len(name)]) != name {
				return 0
			}
			from, to := cborString(b, i+len(name), cborBytes)
			if to == 0 {
				return 0
			}
			data, i = b[from:to:to], to
		case fieldKey:
			const name = cborKeyName
			if len(b)-i < len(name) || string(b[i:i+len(name)]) != name {
				return 0
			}
			from, to := cborString(b, i+len(name), cborText)
			if to == 0 {
				return 0
			}
			key, i = text(b[from:to]), to
		case fieldSequence:
			const name = cborSequenceName
			if len(b)-i < len(name) || string(b[i:i+len(name)]) != name {
				return 0
			}
			from, to := cborString(b, i+len(name), cborText)
			if to == 0 {
				return 0
			}
			sequence, i = text(b[from:to]), to
		case fieldArrival:
			const name = cborArrivalName
			if len(b)-i < len(name)+10 || string(b[i:i+len(name)]) != name {
				return 0
			}
			if i += len(name); b[i] == cborTag|1 {
				i++
			}
			if b[i] != cborUint|27 || len(b)-i < 9 {
				return 0
			}
			// Eight bytes are milliseconds, unless the value is absurd.
			if arrival = be64(b[i+1:]); arrival < 1e11 || arrival > maxArrival {
				return 0
			}
			i += 9
		case fieldEncryption:
			const name = cborEncryptionName
			if len(b)-i < len(name) || string(b[i:i+len(name)]) != name {
				return 0
			}
			from, to := cborString(b, i+len(name), cborText)
			if to == 0 {
				return 0
			}
			encrypted, i = string(b[from:to]) == kms, to
		}
	}
	if l.head == cborMap|cborOpen {
		if i >= len(b) || b[i] != cborBreak {
			return 0
		}
		i++
	}
	*r = Record{Data: data, Key: key, SequenceNumber: sequence, Arrival: int64(arrival), Encrypted: encrypted}
	return i
}

// cborString returns where the content of the definite string at b[i:] begins and ends; to is 0 if there is none.
func cborString(b []byte, i int, major byte) (from, to int) {
	if len(b)-i < 5 { // the longest head that is looked for; the very end of an answer is read the long way
		return 0, 0
	}
	n := int(b[i] ^ major)
	switch {
	case n < 24:
		from = i + 1
	case n == 24:
		n, from = int(b[i+1]), i+2
	case n == 25:
		n, from = be16(b[i+1:]), i+3
	case n == 26:
		n, from = be32(b[i+1:]), i+5
	default:
		return 0, 0
	}
	if n < 0 || n > len(b)-from {
		return 0, 0
	}
	return from, from + n
}
