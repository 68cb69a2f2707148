package aggregate

// These are the fields of the format. Each constant is the tag that precedes the field in the
// message: the field's number times 8, plus its wire type. A known number with another wire type
// counts as an unknown field, as always in protobuf.
const (
	varint = 0
	length = 2 // a varint, followed by as many bytes as its value

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
	// maxDepth limits nested groups. It is the limit of the protobuf library that the reference
	// implementation uses.
	maxDepth = 100
)

// The functions below read a value from b at index p and return the index after it. They return 0
// if the value is cut short or invalid. 0 is never the index after a value.

// short reads a varint of one or two bytes, which are the usual sizes. It returns 0 for longer
// varints, and for a varint in the last byte of b. It is the part of uvarint that the compiler
// inlines in hot paths.
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

// chunk reads a length and returns the start and the end of the bytes that follow it.
func chunk(b []byte, p int) (start, end int) {
	n, start := uvarint(b, p)
	if start == 0 || n > uint64(len(b)-start) {
		return 0, 0
	}
	return start, start + int(n)
}

// skip skips the value of an unknown field. The caller has read its tag.
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
	case 3: // a group: it ends with the end tag of the same number
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
	return 0 // too deep, an end without a start, or an invalid wire type
}

func fixed(b []byte, p, n int) (next int) {
	if len(b)-p < n {
		return 0
	}
	return p + n
}
