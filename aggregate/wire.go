package aggregate

// The fields of the format, as the tags that precede them in the message: the field's number times
// 8, plus its wire type. A known number with another wire type is an unknown field, as always in
// protobuf.
const (
	varint = 0
	length = 2 // a varint, and as many bytes as its value

	// AggregatedRecord
	keyTableTag  = 1<<3 | length
	hashTableTag = 2<<3 | length
	recordsTag   = 3<<3 | length

	// Record
	keyIndexTag  = 1<<3 | varint
	hashIndexTag = 2<<3 | varint
	dataTag      = 3<<3 | length
	tagsTag      = 4<<3 | length

	// Tag
	tagKeyTag   = 1<<3 | length
	tagValueTag = 2<<3 | length
)

const (
	maxTag = 1<<32 - 1 // field numbers have 29 bits
	// of nested groups; the same limit as in the reference's protobuf library
	maxDepth = 100
)

// The functions below read b from index p on and return the index after what they read, or 0 if b
// does not contain it there because it is cut short or invalid. 0 is never an index after
// something.

// short reads a varint of one or two bytes, which are the usual sizes. It returns 0 for any other.
// It is the part of uvarint that is inlined in hot paths.
func short(b []byte, p int) (v uint64, next int) {
	if p+1 < len(b) {
		if v = uint64(b[p]); v < 0x80 {
			return v, p + 1
		}
		if c := uint64(b[p+1]); c < 0x80 {
			return v&0x7f | c<<7, p + 2
		}
	}
	return 0, 0
}

// uvarint reads a varint of at most 64 bits.
func uvarint(b []byte, p int) (v uint64, next int) {
	for shift := 0; shift < 64 && p < len(b); shift += 7 {
		c := uint64(b[p])
		p++
		if shift == 63 && c > 1 {
			return 0, 0
		}
		v |= c & 0x7f << shift
		if c < 0x80 {
			return v, p
		}
	}
	return 0, 0
}

// chunk reads a length and returns where the counted bytes start and end.
func chunk(b []byte, p int) (start, end int) {
	n, start := uvarint(b, p)
	if start == 0 || n > uint64(len(b)-start) {
		return 0, 0
	}
	return start, start + int(n)
}

// skip skips the value of an unknown field, whose tag was read before.
func skip(b []byte, p int, tag uint64, depth int) (next int) {
	if tag>>3 == 0 || tag > maxTag {
		return 0
	}
	switch tag & 7 {
	case varint:
		_, next = uvarint(b, p)
		return next
	case length:
		_, next = chunk(b, p)
		return next
	case 1:
		return fixed(b, p, 8)
	case 5:
		return fixed(b, p, 4)
	case 3: // a group: fields up to the end tag of the same number
		for depth > 0 {
			var inner uint64
			if inner, p = uvarint(b, p); p == 0 || inner == tag+1 {
				return p
			}
			if p = skip(b, p, inner, depth-1); p == 0 {
				return 0
			}
		}
	}
	return 0 // too deep, an end without a start, or a wire type that does not exist
}

func fixed(b []byte, p, n int) (next int) {
	if len(b)-p < n {
		return 0
	}
	return p + n
}
