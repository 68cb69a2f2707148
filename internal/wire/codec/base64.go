package codec

import "encoding/binary"

// base64Tables has one table for each position in a group of four characters. A table maps a
// character to its six bits, at their place in the three bytes of the group. A character outside
// the alphabet maps to the highest bit.
var base64Tables = func() (t [4][256]uint32) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for place := range t {
		for c := range t[place] {
			t[place][c] = 1 << 31
		}
		for bits, c := range []byte(alphabet) {
			// The three bytes are the lower 24 bits of a word, in big-endian order. The flag for an
			// invalid character is bit 31.
			t[place][c] = uint32(bits) << (18 - 6*place)
		}
	}
	return t
}()

const base64Bad = 1 << 31

// base64Groups decodes groups of four characters from b[src:] to b[dst:]. It stops at a group with
// a character outside the alphabet, or if less than a group remains. dst must be at most src, so
// that it only overwrites bytes that were read. It returns the new positions.
func base64Groups(b []byte, dst, src int) (int, int) {
	t := &base64Tables
	// Eight characters are six bytes, but eight bytes are stored at a time. The next store
	// overwrites the last two. Because dst is at most src, a store never reaches unread characters.
	for src+8 <= len(b) {
		in := b[src : src+8 : src+8]
		hi := t[0][in[0]] | t[1][in[1]] | t[2][in[2]] | t[3][in[3]]
		lo := t[0][in[4]] | t[1][in[5]] | t[2][in[6]] | t[3][in[7]]
		if (hi|lo)&base64Bad != 0 {
			break
		}
		binary.BigEndian.PutUint64(b[dst:dst+8], uint64(hi)<<40|uint64(lo)<<16)
		dst, src = dst+6, src+8
	}
	for src+4 <= len(b) {
		v := t[0][b[src]] | t[1][b[src+1]] | t[2][b[src+2]] | t[3][b[src+3]]
		if v&base64Bad != 0 {
			break
		}
		b[dst], b[dst+1], b[dst+2] = byte(v>>16), byte(v>>8), byte(v)
		dst, src = dst+3, src+4
	}
	return dst, src
}

// base64Tail decodes the characters after base64Groups one by one. These are the group with the
// padding, line breaks, and invalid characters. The zero value is ready to use.
type base64Tail struct {
	acc    uint32
	chars  int // in the current group, including padding
	padded bool
}

// add consumes the next character and appends decoded bytes to out. It returns false if the
// character is not allowed here.
func (t *base64Tail) add(c byte, out []byte) ([]byte, bool) {
	if c == '\n' || c == '\r' {
		return out, true
	}
	if c == '=' {
		switch {
		case t.chars == 2 && !t.padded:
			out = append(out, byte(t.acc>>4))
		case t.chars == 3 && !t.padded:
			out = append(out, byte(t.acc>>10), byte(t.acc>>2))
		case t.chars == 3:
		default:
			return out, false
		}
		t.padded = true
		t.chars++
		return out, true
	}
	v := base64Tables[3][c]
	if v&base64Bad != 0 || t.padded {
		return out, false
	}
	t.acc = t.acc<<6 | v
	if t.chars++; t.chars == 4 {
		out = append(out, byte(t.acc>>16), byte(t.acc>>8), byte(t.acc))
		t.acc, t.chars = 0, 0
	}
	return out, true
}

// done reports whether the text may end here.
func (t *base64Tail) done() bool { return t.chars == 0 || t.chars == 4 }

// decodeBase64 decodes b in place and returns the number of decoded bytes.
func decodeBase64(b []byte) (n int, ok bool) {
	dst, src := base64Groups(b, 0, 0)
	var tail base64Tail
	out := b[:dst]
	for _, c := range b[src:] {
		if out, ok = tail.add(c, out); !ok {
			return 0, false
		}
	}
	return len(out), tail.done()
}
