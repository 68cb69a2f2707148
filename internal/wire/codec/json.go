package codec

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonReader reads JSON. It unquotes strings in place.
type jsonReader struct {
	b []byte
	i int
}

func (d *jsonReader) malformed(what string) error {
	return &MalformedError{Format: JSON, Offset: d.i, What: what}
}

func (d *jsonReader) short() error {
	return &MalformedError{Format: JSON, Offset: d.i, What: shortAnswer, short: true}
}

func jsonBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// peek skips blanks and returns the first byte of the next token.
func (d *jsonReader) peek() (byte, error) {
	for d.i < len(d.b) {
		if c := d.b[d.i]; !jsonBlank(c) {
			return c, nil
		}
		d.i++
	}
	return 0, d.short()
}

// want consumes the byte c, or returns an error.
func (d *jsonReader) want(c byte, what string) error {
	got, err := d.peek()
	if err != nil {
		return err
	}
	if got != c {
		return d.malformed("expected " + what)
	}
	d.i++
	return nil
}

func (d *jsonReader) literal(word string) error {
	if len(d.b)-d.i < len(word) {
		return d.short()
	}
	if string(d.b[d.i:d.i+len(word)]) != word {
		return d.malformed("expected " + word)
	}
	d.i += len(word)
	return nil
}

// null consumes a null if the next value is one.
func (d *jsonReader) null() (bool, error) {
	if c, err := d.peek(); err != nil || c != 'n' {
		return false, err
	}
	return true, d.literal("null")
}

// more consumes the comma before the next element of a list or an object. There is no comma before
// the first element. more reports whether another element follows. If not, it consumes the closing
// bracket.
func (d *jsonReader) more(first *bool, closing byte) (bool, error) {
	c, err := d.peek()
	if err != nil {
		return false, err
	}
	if c == closing {
		d.i++
		return false, nil
	}
	if *first {
		*first = false
		return true, nil
	}
	if c != ',' {
		return false, d.malformed("expected a comma or a closing bracket")
	}
	d.i++
	return true, nil
}

func (d *jsonReader) object(member func(name []byte) error) error {
	if err := d.want('{', "an object"); err != nil {
		return err
	}
	first := true
	for {
		more, err := d.more(&first, '}')
		if err != nil || !more {
			return err
		}
		name, err := d.name()
		if err != nil {
			return err
		}
		if null, err := d.null(); err != nil {
			return err
		} else if null {
			continue
		}
		if err := member(name); err != nil {
			return err
		}
	}
}

// name returns the name of a member and consumes the colon after it.
func (d *jsonReader) name() ([]byte, error) {
	name, err := d.text()
	if err != nil {
		return nil, err
	}
	return name, d.want(':', "a colon")
}

func (d *jsonReader) array(element func(null bool) error) error {
	if err := d.want('[', "a list"); err != nil {
		return err
	}
	first := true
	for {
		more, err := d.more(&first, ']')
		if err != nil || !more {
			return err
		}
		null, err := d.null()
		if err != nil {
			return err
		}
		if err := element(null); err != nil {
			return err
		}
	}
}

func (d *jsonReader) text() ([]byte, error) {
	if err := d.want('"', "a string"); err != nil {
		return nil, err
	}
	from := d.i
	d.i = jsonPlain(d.b, d.i)
	if d.i >= len(d.b) {
		return nil, d.short()
	}
	if d.b[d.i] == '"' {
		d.i++
		return d.b[from : d.i-1 : d.i-1], nil
	}
	return d.unquote(from)
}

// jsonPlain returns the index of the first special byte of a string in b[i:]. Special bytes are
// quotes, backslashes and control characters. It returns len(b) if there is none.
func jsonPlain(b []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		v := binary.LittleEndian.Uint64(b[i:])
		quote, slash := v^(ones*'"'), v^(ones*'\\')
		// The lowest marked byte is special. Higher bytes may be marked because of a carry.
		if marks := ((quote - ones) &^ quote & highs) | ((slash - ones) &^ slash & highs) | ((v - ones*0x20) &^ v & highs); marks != 0 {
			return i + bits.TrailingZeros64(marks)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < 0x20 {
			break
		}
	}
	return i
}

// unquote returns the string that begins at from. The string has no special bytes before d.i.
// Invalid UTF-8 becomes U+FFFD.
func (d *jsonReader) unquote(from int) ([]byte, error) {
	out := fixUTF8(d.b[from:d.i])
	inPlace := len(out) == d.i-from
	for {
		if d.i >= len(d.b) {
			return nil, d.short()
		}
		var char [utf8.UTFMax]byte
		n, at := 0, d.i
		switch c := d.b[d.i]; {
		case c == '"':
			d.i++
			return out[:len(out):len(out)], nil
		case c < 0x20:
			return nil, d.malformed("a control character in a string")
		case c == '\\':
			r, err := d.escape()
			if err != nil {
				return nil, err
			}
			n = utf8.EncodeRune(char[:], r)
		default:
			r, size := utf8.DecodeRune(d.b[d.i:])
			d.i += size
			n = utf8.EncodeRune(char[:], r)
		}
		// The output is not longer than the input that was read, except for invalid UTF-8, which
		// grows.
		if inPlace && from+len(out)+n > d.i {
			d.i = at
			out, inPlace = append(make([]byte, 0, 2*len(out)+64), out...), false
			continue
		}
		out = append(out, char[:n]...)
	}
}

// fixUTF8 replaces each invalid byte of UTF-8 by U+FFFD. It returns b itself if b is valid.
func fixUTF8(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	var fixed []byte
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		fixed = utf8.AppendRune(fixed, r)
		b = b[size:]
	}
	return fixed
}

// escape consumes an escape sequence, or two sequences that form a surrogate pair. Half of a pair
// becomes U+FFFD.
func (d *jsonReader) escape() (rune, error) {
	if d.i+1 >= len(d.b) {
		return 0, d.short()
	}
	c := d.b[d.i+1]
	d.i += 2
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		r, err := d.hex4()
		if err != nil || !utf16.IsSurrogate(r) {
			return r, err
		}
		if d.i+1 < len(d.b) && d.b[d.i] == '\\' && d.b[d.i+1] == 'u' {
			at := d.i
			d.i += 2
			low, err := d.hex4()
			if err != nil {
				return 0, err
			}
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, nil
			}
			d.i = at // not part of this pair
		}
		return utf8.RuneError, nil
	}
	d.i--
	return 0, d.malformed("an escape that JSON does not have")
}

func (d *jsonReader) hex4() (rune, error) {
	if len(d.b)-d.i < 4 {
		return 0, d.short()
	}
	var r rune
	for _, c := range d.b[d.i : d.i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, d.malformed("an escape that JSON does not have")
		}
		r = r<<4 | rune(c)
	}
	d.i += 4
	return r, nil
}

func (d *jsonReader) skip() error { return d.skipAt(0) }

func (d *jsonReader) skipAt(depth int) error {
	if depth > maxDepth {
		return d.malformed("nested too deep")
	}
	c, err := d.peek()
	if err != nil {
		return err
	}
	switch c {
	case '"':
		_, err = d.text()
		return err
	case 't':
		return d.literal("true")
	case 'f':
		return d.literal("false")
	case 'n':
		return d.literal("null")
	case '{', '[':
		d.i++
		first := true
		for {
			// The code of each closing bracket is that of the opening bracket plus two.
			more, err := d.more(&first, c+2)
			if err != nil || !more {
				return err
			}
			if c == '{' {
				if _, err := d.name(); err != nil {
					return err
				}
			}
			if err := d.skipAt(depth + 1); err != nil {
				return err
			}
		}
	default:
		_, err = d.number()
		return err
	}
}

// end checks that only blanks follow.
func (d *jsonReader) end() error {
	if _, err := d.peek(); err != nil {
		return nil
	}
	return d.malformed("more after the end of the answer")
}
