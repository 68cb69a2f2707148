package codec

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// These are the major types of RFC 8949, at their place in the first byte of an item, and the
// simple values that are used.
const (
	cborUint  = 0 << 5
	cborNeg   = 1 << 5
	cborBytes = 2 << 5
	cborText  = 3 << 5
	cborArray = 4 << 5
	cborMap   = 5 << 5
	cborTag   = 6 << 5
	cborOther = 7 << 5

	cborOpen      = 31 // marks a string, array or map of unknown length
	cborFalse     = cborOther | 20
	cborTrue      = cborOther | 21
	cborNull      = cborOther | 22
	cborUndefined = cborOther | 23
	cborFloat16   = cborOther | 25
	cborFloat32   = cborOther | 26
	cborFloat64   = cborOther | 27
	cborBreak     = cborOther | 31
)

const maxTags = 16 // on one value

const shortAnswer = "the answer ends too early"

// cborReader reads CBOR with definite and indefinite lengths, keys in any order, and any tags. It
// ignores tags, because the name of a member determines its type.
type cborReader struct {
	b      []byte
	i      int
	layout cborLayout
}

func (d *cborReader) malformed(what string) error {
	return &MalformedError{Format: CBOR, Offset: d.i, What: what}
}

func (d *cborReader) short() error {
	return &MalformedError{Format: CBOR, Offset: d.i, What: shortAnswer, short: true}
}

// head consumes the first byte of an item and its argument. The argument is the length of the
// item's contents, or its value.
func (d *cborReader) head() (first byte, arg uint64, err error) {
	if d.i >= len(d.b) {
		return 0, 0, d.short()
	}
	first = d.b[d.i]
	info := first & 31
	if info < 24 {
		d.i++
		return first, uint64(info), nil
	}
	if info <= 27 {
		size := 1 << (info - 24)
		rest := d.b[d.i+1:]
		if len(rest) < size {
			return 0, 0, d.short()
		}
		switch size {
		case 1:
			arg = uint64(rest[0])
		case 2:
			arg = uint64(be16(rest))
		case 4:
			arg = uint64(binary.BigEndian.Uint32(rest))
		default:
			arg = binary.BigEndian.Uint64(rest)
		}
		d.i += 1 + size
		return first, arg, nil
	}
	if info == cborOpen && first != cborUint|cborOpen && first != cborNeg|cborOpen && first != cborTag|cborOpen {
		d.i++
		return first, 0, nil
	}
	return 0, 0, d.malformed("an invalid first byte")
}

// reach returns the end of the first string that continues after the end of d.b. It returns 0 if
// there is no such string, or if the string is longer than any answer.
func (d *cborReader) reach() int {
	probe := cborReader{b: d.b, i: d.i}
	for {
		first, n, err := probe.head()
		if err != nil {
			return 0
		}
		if major := first & 0xe0; major != cborBytes && major != cborText || first&31 == cborOpen {
			continue
		}
		if n > uint64(len(probe.b)-probe.i) {
			if n > MostBody {
				return 0
			}
			return probe.i + int(n)
		}
		probe.i += int(n)
	}
}

// peek skips tags and returns the first byte of the value after them.
func (d *cborReader) peek() (byte, error) {
	if d.i < len(d.b) && d.b[d.i]&0xe0 != cborTag {
		return d.b[d.i], nil
	}
	return d.untag()
}

func (d *cborReader) untag() (byte, error) {
	for range maxTags + 1 {
		if d.i >= len(d.b) {
			return 0, d.short()
		}
		if d.b[d.i]&0xe0 != cborTag {
			return d.b[d.i], nil
		}
		if _, _, err := d.head(); err != nil {
			return 0, err
		}
	}
	return 0, d.malformed("too many tags on one value")
}

// null consumes a null if the next value is one.
func (d *cborReader) null() (bool, error) {
	c, err := d.peek()
	if err != nil || (c != cborNull && c != cborUndefined) {
		return false, err
	}
	d.i++
	return true, nil
}

// begin consumes the head of an array or a map. It returns the number of items, or -1 if a break
// ends them.
func (d *cborReader) begin(major byte, items int, what string) (int, error) {
	c, err := d.peek()
	if err != nil {
		return 0, err
	}
	if c&0xe0 != major {
		return 0, d.malformed("expected " + what)
	}
	first, n, err := d.head()
	if err != nil {
		return 0, err
	}
	if first&31 == cborOpen {
		return -1, nil
	}
	if n > uint64((len(d.b)-d.i)/items) {
		return 0, d.short()
	}
	return int(n), nil
}

// more reports whether another item follows. It decrements n, unless n is negative: then a break
// ends the items.
func (d *cborReader) more(n *int) (bool, error) {
	switch {
	case *n > 0:
		*n--
		return true, nil
	case *n == 0:
		return false, nil
	case d.i >= len(d.b):
		return false, d.short()
	case d.b[d.i] == cborBreak:
		d.i++
		return false, nil
	}
	return true, nil
}

func (d *cborReader) object(member func(name []byte) error) error {
	n, err := d.begin(cborMap, 2, "a map")
	if err != nil {
		return err
	}
	for {
		more, err := d.more(&n)
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

// name returns the key of the next entry of a map. A key that is not text counts as an unknown
// name.
func (d *cborReader) name() ([]byte, error) {
	c, err := d.peek()
	if err != nil {
		return nil, err
	}
	if c&0xe0 != cborText {
		return nil, d.skip()
	}
	return d.text()
}

func (d *cborReader) array(element func(null bool) error) error {
	n, err := d.begin(cborArray, 1, "an array")
	if err != nil {
		return err
	}
	for {
		more, err := d.more(&n)
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

func (d *cborReader) text() ([]byte, error) { return d.str(cborText, "text") }

// str returns a text or byte string. It joins chunks in place.
func (d *cborReader) str(major byte, what string) ([]byte, error) {
	c, err := d.peek()
	if err != nil {
		return nil, err
	}
	if c&0xe0 != major {
		return nil, d.malformed("expected " + what)
	}
	if c&31 != cborOpen {
		return d.chunk()
	}
	d.i++
	whole := d.b[d.i:d.i]
	for {
		if d.i >= len(d.b) {
			return nil, d.short()
		}
		c := d.b[d.i]
		if c == cborBreak {
			d.i++
			return whole[:len(whole):len(whole)], nil
		}
		if c&0xe0 != major || c&31 == cborOpen {
			return nil, d.malformed("a chunk of a string has the wrong type")
		}
		chunk, err := d.chunk()
		if err != nil {
			return nil, err
		}
		whole = append(whole, chunk...) // overwrites only heads of chunks, never unread bytes
	}
}

// chunk returns a string of definite length.
func (d *cborReader) chunk() ([]byte, error) {
	_, n, err := d.head()
	if err != nil {
		return nil, err
	}
	if n > uint64(len(d.b)-d.i) {
		return nil, d.short()
	}
	from := d.i
	d.i += int(n)
	return d.b[from:d.i:d.i], nil
}

// number returns an integer or a float. If whole is set, i is the value, and otherwise f.
func (d *cborReader) number() (i int64, f float64, whole bool, err error) {
	c, err := d.peek()
	if err != nil {
		return 0, 0, false, err
	}
	major := c & 0xe0
	if major != cborUint && major != cborNeg && c != cborFloat16 && c != cborFloat32 && c != cborFloat64 {
		return 0, 0, false, d.malformed("expected a number")
	}
	first, arg, err := d.head()
	if err != nil {
		return 0, 0, false, err
	}
	switch first {
	case cborFloat16:
		return 0, float16(uint16(arg)), false, nil
	case cborFloat32:
		return 0, float64(math.Float32frombits(uint32(arg))), false, nil
	case cborFloat64:
		return 0, math.Float64frombits(arg), false, nil
	}
	if arg > math.MaxInt64 {
		return 0, 0, false, d.malformed("a number out of range")
	}
	if i = int64(arg); major == cborNeg {
		i = -1 - i
	}
	return i, 0, true, nil
}

func float16(bits uint16) float64 {
	exp, frac := int(bits>>10&31), float64(bits&1023)
	var f float64
	switch exp {
	case 0:
		f = math.Ldexp(frac, -24)
	case 31:
		if f = math.Inf(1); frac != 0 {
			f = math.NaN()
		}
	default:
		f = math.Ldexp(frac+1024, exp-25)
	}
	if bits>>15 == 1 {
		return -f
	}
	return f
}

func (d *cborReader) integer() (int64, error) {
	i, f, whole, err := d.number()
	if err != nil || whole {
		return i, err
	}
	if !(math.Abs(f) <= 1<<53) { // NaN is rejected as well
		return 0, d.malformed("a number out of range")
	}
	return int64(f), nil
}

// arrival returns a time in milliseconds. Kinesis writes milliseconds, and some servers write
// seconds, as in JSON. Numbers below 1e11 count as seconds. 1e11 seconds is the year 5138, and 1e11
// milliseconds is March 1973, which is before any record.
func (d *cborReader) arrival() (int64, error) {
	i, f, whole, err := d.number()
	if err != nil {
		return 0, err
	}
	const between = 1e11
	if whole {
		if -between < i && i < between {
			i *= 1000
		}
	} else {
		if -between < f && f < between {
			f *= 1000
		}
		if f = math.Round(f); !(minArrival <= f && f <= maxArrival) {
			return 0, d.malformed("a time out of range")
		}
		i = int64(f)
	}
	if i < minArrival || i > maxArrival {
		return 0, d.malformed("a time out of range")
	}
	return i, nil
}

func (d *cborReader) skip() error { return d.skipAt(0) }

func (d *cborReader) skipAt(depth int) error {
	if depth > maxDepth {
		return d.malformed("nested too deep")
	}
	if _, err := d.peek(); err != nil {
		return err
	}
	first, n, err := d.head()
	if err != nil {
		return err
	}
	open := first&31 == cborOpen
	switch major := first & 0xe0; {
	case major == cborArray || major == cborMap:
		items := 1
		if major == cborMap {
			items = 2
		}
		if !open && n > uint64((len(d.b)-d.i)/items) {
			return d.short()
		}
		left := int(n)
		if open {
			left = -1
		}
		for {
			more, err := d.more(&left)
			if err != nil || !more {
				return err
			}
			for range items {
				if err := d.skipAt(depth + 1); err != nil {
					return err
				}
			}
		}
	case (major == cborBytes || major == cborText) && open:
		for {
			if d.i >= len(d.b) {
				return d.short()
			}
			if d.b[d.i] == cborBreak {
				d.i++
				return nil
			}
			if d.b[d.i]&0xe0 != major || d.b[d.i]&31 == cborOpen {
				return d.malformed("a chunk of a string has the wrong type")
			}
			if _, err := d.chunk(); err != nil {
				return err
			}
		}
	case major == cborBytes || major == cborText:
		if n > uint64(len(d.b)-d.i) {
			return d.short()
		}
		d.i += int(n)
	case first == cborBreak:
		d.i--
		return d.malformed("a break where a value was expected")
	case first == cborOther|24 && n < 32:
		return d.malformed("a simple value in a form that is not allowed")
	}
	return nil
}

func (d *cborReader) end() error {
	if d.i != len(d.b) {
		return d.malformed("more after the end of the answer")
	}
	return nil
}

// text returns a string that shares the memory of b.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func be16(b []byte) int    { return int(binary.BigEndian.Uint16(b)) }
func be32(b []byte) int    { return int(binary.BigEndian.Uint32(b)) }
func be64(b []byte) uint64 { return binary.BigEndian.Uint64(b) }
