package filter

import (
	"encoding/binary"
	"math/bits"
)

// mostDepth is how deep arrays and objects may lie in each other, as for encoding/json.
const mostDepth = 10_000

// What follows takes the index at which something begins and returns the one after its end, or -1
// if it is no JSON.

// space returns the index of the next byte that is no white space.
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

// stringEnd takes the index after the opening quote, and also reports whether there are escapes.
// Eight bytes are looked at together: a bit is left of the first that is a quote, a backslash or a
// control character.
func stringEnd(d []byte, i int) (end int, escaped bool) {
	for {
		for i+8 <= len(d) {
			x := binary.LittleEndian.Uint64(d[i:])
			quote, backslash, control := (x^'"'*ones)-ones, (x^'\\'*ones)-ones, x-' '*ones
			found := (quote | backslash | control) & ^x & highs
			if found != 0 {
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

// digits passes over at least one digit.
func digits(d []byte, i int) int {
	from := i
	for uint(i) < uint(len(d)) && d[i]-'0' <= 9 {
		i++
	}
	if i == from {
		return -1
	}
	return i
}

// numberEnd takes the index of the first digit or the minus.
func numberEnd(d []byte, i int) int {
	if d[i] == '-' {
		i++
	}
	switch {
	case i >= len(d):
		return -1
	case d[i] == '0':
		i++
	default:
		if i = digits(d, i); i < 0 {
			return -1
		}
	}
	if i < len(d) && d[i] == '.' {
		if i = digits(d, i+1); i < 0 {
			return -1
		}
	}
	if i < len(d) && d[i]|0x20 == 'e' {
		if i++; i < len(d) && (d[i] == '+' || d[i] == '-') {
			i++
		}
		return digits(d, i)
	}
	return i
}

// wordEnd passes over true, false or null, of which the first letter is known.
func wordEnd(d []byte, i int, word string) int {
	if len(d)-i >= len(word) && string(d[i:i+len(word)]) == word {
		return i + len(word)
	}
	return -1
}

// scalarEnd is the end of a value that is neither array, object nor string.
func scalarEnd(d []byte, i int) int {
	switch c := d[i]; {
	case c == '-' || c-'0' <= 9:
		return numberEnd(d, i)
	case c == 't':
		return wordEnd(d, i, "true")
	case c == 'f':
		return wordEnd(d, i, "false")
	case c == 'n':
		return wordEnd(d, i, "null")
	}
	return -1
}

// nameEnd takes the index of a field's opening quote, and returns where its value begins, and its
// name as it stands there.
func nameEnd(d []byte, i int) (at int, name []byte, escaped bool) {
	if i >= len(d) || d[i] != '"' {
		return -1, nil, false
	}
	end, escaped := stringEnd(d, i+1)
	if end < 0 {
		return -1, nil, false
	}
	name = d[i+1 : end-1]
	if end = space(d, end); end >= len(d) || d[end] != ':' {
		return -1, nil, false
	}
	return space(d, end+1), name, escaped
}

// skip passes over a value at a depth. It keeps in bits whether it is in an array or an object, 64
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
			if i, _ = stringEnd(d, i+1); i < 0 {
				return -1
			}
		case '{', '[':
			if depth+level >= mostDepth {
				return -1
			}
			i = space(d, i+1)
			if i < len(d) && d[i] == c+2 { // nothing is in it
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
		default:
			if i = scalarEnd(d, i); i < 0 {
				return -1
			}
		}
		// A value has ended here.
		for {
			if level == 0 {
				return i
			}
			if i < len(d) && d[i] <= ' ' {
				i = space(d, i)
			}
			if uint(i) >= uint(len(d)) {
				return -1
			}
			object := objects & 1
			if c := d[i]; c == ',' {
				i = space(d, i+1)
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

// skipIn passes over what is in an array or an object that begins with open, and its end.
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
