package filter

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// kind is the kind of a record's value.
type kind uint8

const (
	text    kind = iota
	number       // as the text in the payload
	literal      // true, false or null, as text
	instant      // a time in seconds that is not part of the payload
)

// value is a value of a record.
type value struct {
	kind   kind
	bytes  []byte
	number float64 // for an instant
}

// values are the values of one field of a pattern. One of them must match.
type values struct {
	texts    []string            // texts that the field may have
	many     map[string]struct{} // the same texts, if there are many
	literals []string            // numbers, true, false and null that the field may have
	numbers  []float64           // numbers that are compared by value
	instants []float64           // numbers that are compared with times
	tests    []test
}

const fewTexts = 8

// test is an operator with its operands.
type test struct {
	op    operator
	text  string
	fold  bool     // ignore case
	parts []string // parts of a wildcard between its stars
	not   *values  // the values of anything-but
	low
	high
	net netip.Prefix
}

type (
	low struct {
		least    float64
		openLow  bool // the bound itself is excluded
		hasLeast bool
	}
	high struct {
		most     float64
		openHigh bool // the bound itself is excluded
		hasMost  bool
	}
)

type operator uint8

const (
	exists operator = iota
	equalFold
	prefix
	suffix
	wildcard
	anythingBut
	numeric
	cidr
)

// match reports whether x matches one of the values.
func (v *values) match(x value) bool {
	switch x.kind {
	case text:
		if v.many != nil {
			if _, found := v.many[string(x.bytes)]; found {
				return true
			}
		}
		for _, s := range v.texts {
			if s == string(x.bytes) {
				return true
			}
		}
	case number, literal:
		for _, s := range v.literals {
			if s == string(x.bytes) {
				return true
			}
		}
		if x.kind == number && len(v.numbers) > 0 {
			if n, ok := comparable(x.bytes); ok && slices.Contains(v.numbers, n) {
				return true
			}
		}
	case instant:
		for _, n := range v.instants {
			if n == x.number {
				return true
			}
		}
	}
	for i := range v.tests {
		if v.tests[i].match(x) {
			return true
		}
	}
	return false
}

func (t *test) match(x value) bool {
	switch t.op {
	case exists:
		return true
	case anythingBut:
		return !t.not.match(x)
	case numeric:
		return (x.kind == number || x.kind == instant) && t.within(x)
	}
	if x.kind != text {
		return false
	}
	switch t.op {
	case equalFold:
		return bytes.EqualFold(x.bytes, unsafeBytes(t.text))
	case prefix:
		if t.fold {
			return hasPrefixFold(x.bytes, t.text)
		}
		return strings.HasPrefix(unsafeString(x.bytes), t.text)
	case suffix:
		if t.fold {
			return hasSuffixFold(x.bytes, t.text)
		}
		return strings.HasSuffix(unsafeString(x.bytes), t.text)
	case wildcard:
		return t.like(x.bytes)
	case cidr:
		at, ok := address(x.bytes)
		return ok && t.net.Contains(at)
	}
	return false
}

// within reports whether a number is in the range of numeric.
func (t *test) within(x value) bool {
	n := x.number
	if x.kind == number {
		var ok bool
		if n, ok = comparable(x.bytes); !ok {
			return false
		}
	}
	if t.hasLeast && (n < t.least || t.openLow && n == t.least) {
		return false
	}
	return !t.hasMost || n < t.most || !t.openHigh && n == t.most
}

// like reports whether a string matches a wildcard. It searches each part once, after the previous
// part. The first occurrence leaves the most text for the following parts, so one search per star
// is enough.
func (t *test) like(s []byte) bool {
	first, last := t.parts[0], t.parts[len(t.parts)-1]
	if len(t.parts) == 1 {
		return first == string(s)
	}
	if len(s) < len(first)+len(last) || string(s[:len(first)]) != first || string(s[len(s)-len(last):]) != last {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, part := range t.parts[1 : len(t.parts)-1] {
		at := strings.Index(unsafeString(s), part)
		if at < 0 {
			return false
		}
		s = s[at+len(part):]
	}
	return true
}

// hasPrefixFold is like strings.HasPrefix, but ignores case. A letter may have more bytes than its
// other case.
func hasPrefixFold(s []byte, prefix string) bool {
	end := 0
	for range prefix {
		if end >= len(s) {
			return false
		}
		_, n := utf8.DecodeRune(s[end:])
		end += n
	}
	return bytes.EqualFold(s[:end], unsafeBytes(prefix))
}

func hasSuffixFold(s []byte, suffix string) bool {
	begin := len(s)
	for range suffix {
		if begin == 0 {
			return false
		}
		_, n := utf8.DecodeLastRune(s[:begin])
		begin -= n
	}
	return bytes.EqualFold(s[begin:], unsafeBytes(suffix))
}

// address parses an IP address. It rejects impossible input first, because the parser would
// allocate an error.
func address(s []byte) (netip.Addr, bool) {
	if len(s) < 2 || len(s) > len("0000:0000:0000:0000:0000:ffff:255.255.255.255") {
		return netip.Addr{}, false
	}
	dots, colons := 0, 0
	for _, c := range s {
		switch {
		case c == '.':
			dots++
		case c == ':':
			colons++
		case hexDigit(c) < 0:
			return netip.Addr{}, false
		}
	}
	if dots != 3 && colons < 2 {
		return netip.Addr{}, false
	}
	at, err := netip.ParseAddr(unsafeString(s))
	return at, err == nil
}

// unsafeString returns b as a string. The string must not be kept.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// unsafeBytes returns s as bytes. They must not be kept or modified.
func unsafeBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
