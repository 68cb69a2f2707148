package filter

import (
	"encoding/binary"
	"math/bits"
)

// mostDepth is the maximum nesting depth of arrays and objects, as in encoding/json.
const mostDepth = 10_000

// The following functions take the index where an element begins. They return the index after its
// end, or -1 for invalid JSON.

// space returns the index of the next byte that is not white space.
func space(d []byte, i int) int {
	for uint(i) < uint(len(d)) && d[i] <= ' ' && (d[i] == ' ' || d[i] == '\n' || d[i] == '\t' || d[i] == '\r') {
		i++
	}
	return i
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// stringEnd takes the index after the opening quote. escaped reports whether the string has
// escapes. It processes eight bytes at a time.
func stringEnd(d []byte, i int) (end int, escaped bool) {
	for {
		for i+8 <= len(d) {
			if found := special(binary.LittleEndian.Uint64(d[i:])); found != 0 {
				i += bits.TrailingZeros64(found) / 8
				break
			}
			i += 8
		}
		if i >= len(d) {
			return -1, false
		}
		switch c := d[i]; {
		case c == '"':
			return i + 1, escaped
		case c == '\\':
			escaped = true
			if i = escapeEnd(d, i); i < 0 {
				return -1, false
			}
		case c < ' ':
			return -1, false
		default: // one of the last seven bytes
			i++
		}
	}
}

// shortEnd is like stringEnd for a string of less than eight bytes without escapes. It returns -1
// for other strings, and for strings near the end of d.
func shortEnd(d []byte, i int) int {
	if i+8 <= len(d) {
		if found := special(binary.LittleEndian.Uint64(d[i:])); found != 0 {
			if i += bits.TrailingZeros64(found) / 8; d[i] == '"' {
				return i + 1
			}
		}
	}
	return -1
}

// special sets a bit for the first byte that is a quote, a backslash or a control character. It may
// also set bits for later bytes. It returns 0 if there is no such byte.
func special(x uint64) uint64 {
	quote, backslash, control := (x^('"'*ones))-ones, (x^('\\'*ones))-ones, x-(' '*ones)
	return (quote | backslash | control) & ^x & highs
}

// escapeEnd takes the index of a backslash.
func escapeEnd(d []byte, i int) int {
	if i+1 >= len(d) {
		return -1
	}
	switch d[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		if i+6 > len(d) {
			return -1
		}
		for _, c := range d[i+2 : i+6] {
			if hexDigit(c) < 0 {
				return -1
			}
		}
		return i + 6
	}
	return -1
}

func hexDigit(c byte) rune {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0')
	case c >= 'a' && c <= 'f':
		return rune(c - 'a' + 10)
	case c >= 'A' && c <= 'F':
		return rune(c - 'A' + 10)
	}
	return -1
}

// digits skips digits, if there are any.
func digits(d []byte, i int) int {
	for uint(i) < uint(len(d)) && d[i]-'0' <= 9 {
		i++
	}
	return i
}

// numberEnd takes the index of the first digit or the minus sign.
func numberEnd(d []byte, i int) int {
	if d[i] == '-' {
		i++
	}
	from := i
	if i = digits(d, i); i == from || d[from] == '0' && i > from+1 {
		return -1
	}
	if uint(i) < uint(len(d)) && d[i] == '.' {
		from = i + 1
		if i = digits(d, from); i == from {
			return -1
		}
	}
	if uint(i) < uint(len(d)) && d[i]|0x20 == 'e' {
		if i++; i < len(d) && (d[i] == '+' || d[i] == '-') {
			i++
		}
		from = i
		if i = digits(d, i); i == from {
			return -1
		}
	}
	return i
}

// scalarEnd returns the end of a value that is not an array, an object or a string.
func scalarEnd(d []byte, i int) int {
	rest := d[i:]
	switch c := rest[0]; {
	case c == '-' || c-'0' <= 9:
		return numberEnd(d, i)
	case c == 't':
		if len(rest) >= 4 && string(rest[:4]) == "true" {
			return i + 4
		}
	case c == 'f':
		if len(rest) >= 5 && string(rest[:5]) == "false" {
			return i + 5
		}
	case c == 'n':
		if len(rest) >= 4 && string(rest[:4]) == "null" {
			return i + 4
		}
	}
	return -1
}

// nameEnd takes the index of a field's opening quote. It returns the start of the field's value,
// and the raw name.
func nameEnd(d []byte, i int) (at int, name []byte, escaped bool) {
	if i >= len(d) || d[i] != '"' {
		return -1, nil, false
	}
	end, escaped := i+1, false
	if end = shortEnd(d, end); end < 0 {
		if end, escaped = stringEnd(d, i+1); end < 0 {
			return -1, nil, false
		}
	}
	name = d[i+1 : end-1]
	if uint(end) < uint(len(d)) && d[end] != ':' {
		end = space(d, end)
	}
	if uint(end) >= uint(len(d)) || d[end] != ':' {
		return -1, nil, false
	}
	if end++; uint(end) < uint(len(d)) && d[end] <= ' ' {
		end = space(d, end)
	}
	return end, name, escaped
}

// These are parts of literals as loaded words.
const (
	wordTrue = 't' | 'r'<<8 | 'u'<<16 | 'e'<<24
	wordNull = 'n' | 'u'<<8 | 'l'<<16 | 'l'<<24
	wordAlse = 'a' | 'l'<<8 | 's'<<16 | 'e'<<24 // the end of false
)

// wordEnd takes the index of the last four bytes of a literal.
func wordEnd(d []byte, i int, word uint32) int {
	if len(d)-i < 4 || binary.LittleEndian.Uint32(d[i:]) != word {
		return -1
	}
	return i + 4
}

// skip skips a value at a depth. A bit for each level shows whether it is an array or an object.
// skip handles 64 levels at a time, and calls itself for more.
func skip(d []byte, i, depth int) int {
	objects, level := uint64(0), 0
	for {
		// A value begins here, or i is negative.
		if uint(i) >= uint(len(d)) {
			return -1
		}
		switch c := d[i]; c {
		case '"':
			from := i + 1
			if i = shortEnd(d, from); i < 0 {
				i, _ = stringEnd(d, from)
			}
		case '{', '[':
			if depth+level >= mostDepth {
				return -1
			}
			var empty bool
			if i, empty = firstElement(d, i); empty {
				break
			}
			object := uint64(c) >> 5 & 1 // '{' has this bit and '[' does not
			if level < 64 {
				level++
				objects = objects<<1 | object
				continue
			}
			i = skipIn(d, i, depth+level+1, object)
		case '1', '2', '3', '4', '5', '6', '7', '8', '9':
			from := i
			if i = digits(d, i+1); uint(i) < uint(len(d)) && (d[i] == '.' || d[i]|0x20 == 'e') {
				i = numberEnd(d, from)
			}
		case '0', '-':
			i = numberEnd(d, i)
		case 't':
			i = wordEnd(d, i, wordTrue)
		case 'n':
			i = wordEnd(d, i, wordNull)
		case 'f':
			i = wordEnd(d, i+1, wordAlse)
		default:
			return -1
		}
		// A value has ended here, or i is negative.
		if i < 0 {
			return -1
		}
		for {
			if level == 0 {
				return i
			}
			if uint(i) < uint(len(d)) && d[i] <= ' ' {
				i = space(d, i)
			}
			if uint(i) >= uint(len(d)) {
				return -1
			}
			object := objects & 1
			if d[i] == ',' {
				if i++; uint(i) < uint(len(d)) && d[i] <= ' ' {
					i = space(d, i)
				}
				if object != 0 {
					i, _, _ = nameEnd(d, i)
				}
				break
			}
			if d[i] != bracket(object) {
				return -1
			}
			i++
			level--
			objects >>= 1
		}
	}
}

// firstElement takes the index of an opening bracket. It returns the start of the first element, or
// the end of an empty array or object. The name of a field is not part of the element.
func firstElement(d []byte, i int) (at int, empty bool) {
	open := d[i]
	if i++; uint(i) < uint(len(d)) && d[i] <= ' ' {
		i = space(d, i)
	}
	if uint(i) < uint(len(d)) && d[i] == open+2 {
		return i + 1, true
	}
	if open == '{' {
		i, _, _ = nameEnd(d, i)
	}
	return i, false
}

// skipIn skips the elements and the end of an array. If object is 1, it skips those of an object.
// It takes the index of the first element, which may be negative.
func skipIn(d []byte, i, depth int, object uint64) int {
	for {
		if i = skip(d, i, depth); i < 0 {
			return -1
		}
		if i = space(d, i); i >= len(d) {
			return -1
		}
		switch d[i] {
		case bracket(object):
			return i + 1
		case ',':
			i = space(d, i+1)
		default:
			return -1
		}
		if object != 0 {
			i, _, _ = nameEnd(d, i)
		}
	}
}

// bracket returns the closing bracket of an array, or of an object if object is 1.
func bracket(object uint64) byte { return ']' + byte(object)*('}'-']') }
