package filter

import (
	"encoding/binary"
	"math/bits"
)

// mostDepth is the maximum nesting depth of arrays and objects, as for encoding/json.
const mostDepth = 10_000

// The following functions take the index at which an element begins and return the one after its
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

// stringEnd takes the index after the opening quote, and also reports whether there are escapes. It
// processes eight bytes at a time.
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
		default: // of the last seven bytes
			i++
		}
	}
}

// shortEnd is stringEnd for a string of less than eight bytes without escapes; otherwise it returns
// -1.
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

// special sets a bit for the first byte that is a quote, a backslash or a control character, and
// perhaps for later ones. It returns 0 if there is no such byte.
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

// numberEnd takes the index of the first digit or the minus.
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

// scalarEnd returns the end of a value that is neither array, object nor string.
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

// nameEnd takes the index of a field's opening quote, and returns the start of its value and its
// raw name.
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

// Literals as loaded words.
const (
	wordTrue = 't' | 'r'<<8 | 'u'<<16 | 'e'<<24
	wordNull = 'n' | 'u'<<8 | 'l'<<16 | 'l'<<24
	wordAlse = 'a' | 'l'<<8 | 's'<<16 | 'e'<<24 // of false
)

// skip skips a value at a depth. It records in bits whether it is in an array or an object, 64
// levels at a time, and calls itself for more.
func skip(d []byte, i, depth int) int {
	objects, level := uint64(0), 0
	for {
		// A value begins here.
		if uint(i) >= uint(len(d)) {
			return -1
		}
		switch c := d[i]; c {
		case '"':
			end := shortEnd(d, i+1)
			if end < 0 {
				if end, _ = stringEnd(d, i+1); end < 0 {
					return -1
				}
			}
			i = end
		case '{', '[':
			if depth+level >= mostDepth {
				return -1
			}
			if i++; uint(i) < uint(len(d)) && d[i] <= ' ' {
				i = space(d, i)
			}
			if uint(i) < uint(len(d)) && d[i] == c+2 { // it is empty
				i++
				break
			}
			if level == 64 {
				if i = skipIn(d, i, depth+level+1, c); i < 0 {
					return -1
				}
				break
			}
			level++
			objects <<= 1
			if c == '{' {
				objects |= 1
				if i, _, _ = nameEnd(d, i); i < 0 {
					return -1
				}
			}
			continue
		case '1', '2', '3', '4', '5', '6', '7', '8', '9':
			from := i
			if i = digits(d, i+1); uint(i) < uint(len(d)) && (d[i] == '.' || d[i]|0x20 == 'e') {
				if i = numberEnd(d, from); i < 0 {
					return -1
				}
			}
		case '0', '-':
			if i = numberEnd(d, i); i < 0 {
				return -1
			}
		case 't':
			if len(d)-i < 4 || binary.LittleEndian.Uint32(d[i:]) != wordTrue {
				return -1
			}
			i += 4
		case 'n':
			if len(d)-i < 4 || binary.LittleEndian.Uint32(d[i:]) != wordNull {
				return -1
			}
			i += 4
		case 'f':
			if len(d)-i < 5 || binary.LittleEndian.Uint32(d[i+1:]) != wordAlse {
				return -1
			}
			i += 5
		default:
			return -1
		}
		// A value has ended here.
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
			if c := d[i]; c == ',' {
				if i++; uint(i) < uint(len(d)) && d[i] <= ' ' {
					i = space(d, i)
				}
				if object != 0 {
					if i, _, _ = nameEnd(d, i); i < 0 {
						return -1
					}
				}
				break
			} else if c != ']'+byte(object)*('}'-']') {
				return -1
			}
			i++
			level--
			objects >>= 1
		}
	}
}

// skipIn skips the content and the end of an array or an object that begins with open.
func skipIn(d []byte, i, depth int, open byte) int {
	for {
		if open == '{' {
			if i, _, _ = nameEnd(d, i); i < 0 {
				return -1
			}
		}
		if i = skip(d, i, depth); i < 0 {
			return -1
		}
		if i = space(d, i); i >= len(d) {
			return -1
		}
		switch d[i] {
		case open + 2:
			return i + 1
		case ',':
			i = space(d, i+1)
		default:
			return -1
		}
	}
}
