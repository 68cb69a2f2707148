package codec

import (
	"bytes"
	"encoding/base64"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonDecoder decodes JSON as in RFC 8259. Blobs are base64 strings. Timestamps are seconds since
// the epoch.
type jsonDecoder struct {
	in      []byte
	pos     int
	depth   int
	scratch []byte // unescaped text
	blobs   blobs
}

func (d *jsonDecoder) space() {
	for d.pos < len(d.in) {
		switch d.in[d.pos] {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return
		}
	}
}

func (d *jsonDecoder) Peek() Kind {
	d.space()
	if d.pos >= len(d.in) {
		return Invalid
	}
	switch c := d.in[d.pos]; {
	case c == '{':
		return Map
	case c == '[':
		return Array
	case c == '"':
		return String
	case c == 't' || c == 'f':
		return Bool
	case c == 'n':
		return Null
	case c == '-' || c >= '0' && c <= '9':
		return Number
	}
	return Invalid
}

func (d *jsonDecoder) want(k Kind) error {
	got := d.Peek()
	if got == k {
		return nil
	}
	if d.pos >= len(d.in) {
		return malformed("unexpected end of input")
	}
	if got == Invalid {
		return malformed("unexpected character at offset %d", d.pos)
	}
	return malformed("a %s cannot be converted to a %s", got, k)
}

func (d *jsonDecoder) literal(word string) error {
	if len(d.in)-d.pos < len(word) || string(d.in[d.pos:d.pos+len(word)]) != word {
		return malformed("unexpected character at offset %d", d.pos)
	}
	d.pos += len(word)
	return nil
}

func (d *jsonDecoder) Bool() (bool, error) {
	if err := d.want(Bool); err != nil {
		return false, err
	}
	if d.in[d.pos] == 't' {
		return true, d.literal("true")
	}
	return false, d.literal("false")
}

// number consumes a number and returns its text.
func (d *jsonDecoder) number() (string, error) {
	if err := d.want(Number); err != nil {
		return "", err
	}
	start, p, in := d.pos, d.pos, d.in
	digits := func() bool {
		from := p
		for p < len(in) && in[p] >= '0' && in[p] <= '9' {
			p++
		}
		return p > from
	}
	if in[p] == '-' {
		p++
	}
	whole := p
	ok := digits() && (in[whole] != '0' || p == whole+1)
	if ok && p < len(in) && in[p] == '.' {
		p++
		ok = digits()
	}
	if ok && p < len(in) && (in[p] == 'e' || in[p] == 'E') {
		p++
		if p < len(in) && (in[p] == '+' || in[p] == '-') {
			p++
		}
		ok = digits()
	}
	if !ok || p-start > 64 {
		return "", malformed("bad number at offset %d", start)
	}
	d.pos = p
	return string(in[start:p]), nil
}

func (d *jsonDecoder) Int() (int64, error) {
	text, err := d.number()
	if err != nil {
		return 0, err
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(f) > 1<<53 {
		return 0, malformed("%s is not an integer", text)
	}
	return int64(f), nil
}

func (d *jsonDecoder) Float() (float64, bool, error) {
	text, err := d.number()
	if err != nil {
		return 0, false, err
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, false, malformed("bad number")
	}
	return f, !strings.ContainsAny(text, ".eE"), nil
}

func (d *jsonDecoder) Time() (time.Time, error) {
	text, err := d.number()
	if err != nil {
		return time.Time{}, err
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return time.Time{}, malformed("bad timestamp")
	}
	return timeOfMillis(math.Round(f * 1000))
}

// quoted consumes a string. The result aliases the input or the scratch buffer. It is valid until
// the next string is read.
func (d *jsonDecoder) quoted() ([]byte, error) {
	if err := d.want(String); err != nil {
		return nil, err
	}
	in, start := d.in, d.pos+1
	ascii := true
	for p := start; p < len(in); p++ {
		switch c := in[p]; {
		case c == '"':
			d.pos = p + 1
			if !ascii && !utf8.Valid(in[start:p]) {
				return nil, malformed("string at offset %d is not valid UTF-8", start-1)
			}
			return in[start:p], nil
		case c == '\\':
			return d.unescape(start, p)
		case c < ' ':
			return nil, malformed("control character in the string at offset %d", start-1)
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, malformed("the string at offset %d does not end", start-1)
}

// unescape completes a string that began at start. Its first backslash is at p.
func (d *jsonDecoder) unescape(start, p int) ([]byte, error) {
	in := d.in
	out := append(d.scratch[:0], in[start:p]...)
	for p < len(in) {
		c := in[p]
		switch {
		case c == '"':
			d.pos, d.scratch = p+1, out
			if !utf8.Valid(out) {
				return nil, malformed("string at offset %d is not valid UTF-8", start-1)
			}
			return out, nil
		case c < ' ':
			return nil, malformed("control character in the string at offset %d", start-1)
		case c != '\\':
			out = append(out, c)
			p++
			continue
		}
		if p+1 >= len(in) {
			break
		}
		c = in[p+1]
		p += 2
		switch c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, ok := hex4(in, p)
			if !ok {
				return nil, malformed("bad escape in the string at offset %d", start-1)
			}
			p += 4
			if utf16.IsSurrogate(r) {
				low, ok := rune(0), false
				if p+1 < len(in) && in[p] == '\\' && in[p+1] == 'u' {
					low, ok = hex4(in, p+2)
				}
				if r = utf16.DecodeRune(r, low); ok && r != utf8.RuneError {
					p += 6
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			return nil, malformed("bad escape in the string at offset %d", start-1)
		}
	}
	return nil, malformed("the string at offset %d does not end", start-1)
}

func hex4(in []byte, p int) (rune, bool) {
	if p+4 > len(in) {
		return 0, false
	}
	var r rune
	for _, c := range in[p : p+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

func (d *jsonDecoder) Text() (string, error) {
	b, err := d.quoted()
	return string(b), err
}

// base64Text consumes a string that contains base64. It is faster than quoted, because it leaves
// the detection of invalid characters to the base64 decoder.
func (d *jsonDecoder) base64Text() ([]byte, error) {
	if err := d.want(String); err != nil {
		return nil, err
	}
	rest := d.in[d.pos+1:]
	n := bytes.IndexByte(rest, '"')
	if n < 0 || bytes.IndexByte(rest[:n], '\\') >= 0 || bytes.IndexByte(rest[:n], '\n') >= 0 || bytes.IndexByte(rest[:n], '\r') >= 0 {
		return d.quoted()
	}
	d.pos += n + 2
	return rest[:n], nil
}

func (d *jsonDecoder) Blob() ([]byte, error) {
	b, err := d.base64Text()
	if err != nil {
		return nil, err
	}
	n := base64.StdEncoding.DecodedLen(len(b))
	out := d.blobs.take(n, len(d.in)/4*3+3)
	out, err = base64.StdEncoding.Strict().AppendDecode(out, b)
	// Package base64 ignores line breaks. The service does not.
	if err != nil || bytes.IndexByte(b, '\n') >= 0 || bytes.IndexByte(b, '\r') >= 0 {
		return nil, badBase64(b)
	}
	return out, nil
}

func (d *jsonDecoder) enter() error {
	if d.depth++; d.depth > maxDepth {
		return malformed("nested more than %d levels deep", maxDepth)
	}
	d.pos++
	return nil
}

// next consumes the separator between two elements and reports whether another one follows.
func (d *jsonDecoder) next(first bool, end byte) (bool, error) {
	d.space()
	if d.pos >= len(d.in) {
		return false, malformed("unexpected end of input")
	}
	c := d.in[d.pos]
	if c == end {
		d.pos++
		d.depth--
		return false, nil
	}
	if first {
		return true, nil
	}
	if c != ',' {
		return false, malformed("unexpected character at offset %d", d.pos)
	}
	d.pos++
	return true, nil
}

func (d *jsonDecoder) Map(member func(key []byte) error) error {
	if err := d.want(Map); err != nil {
		return err
	}
	if err := d.enter(); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := d.next(first, '}')
		if err != nil || !more {
			return err
		}
		key, err := d.quoted()
		if err != nil {
			return err
		}
		if len(key) > 0 && len(d.scratch) > 0 && &key[0] == &d.scratch[0] {
			key = bytes.Clone(key) // reading the value may overwrite the scratch buffer
		}
		if d.space(); d.pos >= len(d.in) || d.in[d.pos] != ':' {
			return malformed("a colon is missing at offset %d", d.pos)
		}
		d.pos++
		if err := member(key); err != nil {
			return err
		}
	}
}

func (d *jsonDecoder) Array(element func() error) error {
	if err := d.want(Array); err != nil {
		return err
	}
	if err := d.enter(); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := d.next(first, ']')
		if err != nil || !more {
			return err
		}
		if err := element(); err != nil {
			return err
		}
	}
}

func (d *jsonDecoder) Skip() error {
	switch d.Peek() {
	case Map:
		return d.Map(func([]byte) error { return d.Skip() })
	case Array:
		return d.Array(d.Skip)
	case String:
		_, err := d.quoted()
		return err
	case Number:
		_, err := d.number()
		return err
	case Bool:
		_, err := d.Bool()
		return err
	case Null:
		return d.literal("null")
	default:
		return d.want(Null)
	}
}

func (d *jsonDecoder) End() error {
	if d.space(); d.pos != len(d.in) {
		return malformed("unexpected character at offset %d", d.pos)
	}
	return nil
}

// appendJSONString appends s as a quoted and escaped JSON string.
func appendJSONString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}
