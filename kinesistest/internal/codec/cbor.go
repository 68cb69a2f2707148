package codec

import (
	"encoding/binary"
	"math"
	"time"
	"unicode/utf8"
)

// Major types of RFC 8949, shifted to their position in the first byte.
const (
	cborUint   = 0 << 5
	cborNegInt = 1 << 5
	cborBytes  = 2 << 5
	cborText   = 3 << 5
	cborArray  = 4 << 5
	cborMap    = 5 << 5
	cborTag    = 6 << 5
	cborOther  = 7 << 5

	cborIndefinite = 31 // additional information in the first byte of an indefinite-length item
	cborFalse      = cborOther | 20
	cborTrue       = cborOther | 21
	cborNull       = cborOther | 22
	cborUndefined  = cborOther | 23
	cborFloat16    = cborOther | 25
	cborFloat32    = cborOther | 26
	cborFloat64    = cborOther | 27
	cborBreak      = cborOther | 31
)

// cborDecoder decodes CBOR as in RFC 8949. It supports definite and indefinite lengths, and any
// tags. Blobs are byte strings. Timestamps are milliseconds since the epoch.
type cborDecoder struct {
	in    []byte
	pos   int
	depth int
	tower bool // the body has too many nested tags, so decoding stops
	blobs blobs
}

// untag skips the tags before the next value. The API field already determines the type of the
// value.
func (d *cborDecoder) untag() error {
	for range maxDepth {
		if d.tower {
			break
		}
		if d.pos >= len(d.in) || d.in[d.pos]&0xe0 != cborTag {
			return nil
		}
		if _, _, err := d.head(); err != nil {
			return err
		}
	}
	d.tower = true
	return malformed("more than %d tags on one value", maxDepth)
}

// head consumes the first byte of an item and the argument that follows.
func (d *cborDecoder) head() (first byte, arg uint64, err error) {
	if d.pos >= len(d.in) {
		return 0, 0, malformed("unexpected end of input")
	}
	first = d.in[d.pos]
	rest := d.in[d.pos+1:]
	info := first & 31
	n := 0
	switch {
	case info < 24:
		arg = uint64(info)
	case info <= 27:
		if n = 1 << (info - 24); len(rest) < n {
			return 0, 0, malformed("unexpected end of input")
		}
		for _, b := range rest[:n] {
			arg = arg<<8 | uint64(b)
		}
	case info == cborIndefinite && first != cborUint|31 && first != cborNegInt|31 && first != cborTag|31:
	default:
		return 0, 0, malformed("bad initial byte 0x%02x at offset %d", first, d.pos)
	}
	d.pos += 1 + n
	return first, arg, nil
}

func (d *cborDecoder) Peek() Kind {
	if err := d.untag(); err != nil || d.pos >= len(d.in) {
		return Invalid
	}
	switch first := d.in[d.pos]; first & 0xe0 {
	case cborUint, cborNegInt:
		return Number
	case cborBytes:
		return Bytes
	case cborText:
		return String
	case cborArray:
		return Array
	case cborMap:
		return Map
	default:
		switch first {
		case cborFalse, cborTrue:
			return Bool
		case cborNull, cborUndefined:
			return Null
		case cborFloat16, cborFloat32, cborFloat64:
			return Number
		}
	}
	return Invalid
}

func (d *cborDecoder) want(k Kind) error {
	got := d.Peek()
	if got == k {
		return nil
	}
	if d.tower {
		return d.untag()
	}
	if d.pos >= len(d.in) {
		return malformed("unexpected end of input")
	}
	if got == Invalid {
		return malformed("unexpected byte 0x%02x at offset %d", d.in[d.pos], d.pos)
	}
	return malformed("a %s cannot be converted to a %s", got, k)
}

func (d *cborDecoder) Bool() (bool, error) {
	if err := d.want(Bool); err != nil {
		return false, err
	}
	d.pos++
	return d.in[d.pos-1] == cborTrue, nil
}

// number consumes a number. whole reports whether it was encoded as an integer.
func (d *cborDecoder) number() (i int64, f float64, whole bool, err error) {
	if err := d.want(Number); err != nil {
		return 0, 0, false, err
	}
	first, arg, err := d.head()
	if err != nil {
		return 0, 0, false, err
	}
	switch {
	case first&0xe0 == cborUint || first&0xe0 == cborNegInt:
		if arg > math.MaxInt64 {
			return 0, 0, false, malformed("integer out of range")
		}
		if i = int64(arg); first&0xe0 == cborNegInt {
			i = -1 - i
		}
		return i, float64(i), true, nil
	case first == cborFloat16:
		f = float16(uint16(arg))
	case first == cborFloat32:
		f = float64(math.Float32frombits(uint32(arg)))
	default:
		f = math.Float64frombits(arg)
	}
	return 0, f, false, nil
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

func (d *cborDecoder) Int() (int64, error) {
	i, f, whole, err := d.number()
	if err != nil || whole {
		return i, err
	}
	if !(math.Abs(f) <= 1<<53) {
		return 0, malformed("%v is not an integer", f)
	}
	return int64(f), nil
}

func (d *cborDecoder) Float() (float64, bool, error) {
	_, f, whole, err := d.number()
	return f, whole, err
}

func (d *cborDecoder) Time() (time.Time, error) {
	_, f, _, err := d.number()
	if err != nil {
		return time.Time{}, err
	}
	return timeOfMillis(math.Round(f))
}

// chunk consumes the n bytes of a string. The head of the string has been read already.
func (d *cborDecoder) chunk(n uint64) ([]byte, error) {
	if n > uint64(len(d.in)-d.pos) {
		return nil, malformed("a string of %d bytes ends behind the input", n)
	}
	b := d.in[d.pos : d.pos+int(n)]
	d.pos += int(n)
	return b, nil
}

// stringBytes consumes a text or byte string. If the string has a definite length, the result
// aliases the input. SDKs always send definite lengths.
func (d *cborDecoder) stringBytes(k Kind) ([]byte, error) {
	if err := d.want(k); err != nil {
		return nil, err
	}
	first, n, err := d.head()
	if err != nil {
		return nil, err
	}
	if first&31 != cborIndefinite {
		b, err := d.chunk(n)
		if err == nil && k == String && !utf8.Valid(b) {
			err = malformed("text that is not valid UTF-8")
		}
		return b, err
	}
	major := first & 0xe0
	out := []byte{}
	for {
		first, n, err := d.head()
		if err != nil {
			return nil, err
		}
		if first == cborBreak {
			return out, nil
		}
		if first&0xe0 != major || first&31 == cborIndefinite {
			return nil, malformed("bad chunk 0x%02x of a string", first)
		}
		b, err := d.chunk(n)
		if err != nil {
			return nil, err
		}
		if k == String && !utf8.Valid(b) {
			return nil, malformed("text that is not valid UTF-8")
		}
		out = append(out, b...)
	}
}

func (d *cborDecoder) Text() (string, error) {
	b, err := d.stringBytes(String)
	return string(b), err
}

func (d *cborDecoder) Blob() ([]byte, error) {
	b, err := d.stringBytes(Bytes)
	if err != nil {
		return nil, err
	}
	return append(d.blobs.take(len(b), len(d.in)), b...), nil
}

// each calls item for every item of the array or map that comes next.
func (d *cborDecoder) each(k Kind, item func() error) error {
	if err := d.want(k); err != nil {
		return err
	}
	if d.depth++; d.depth > maxDepth {
		return malformed("nested more than %d levels deep", maxDepth)
	}
	first, n, err := d.head()
	if err != nil {
		return err
	}
	if first&31 != cborIndefinite {
		// Each item takes at least one byte, so a wrong count reaches the end of the input soon.
		for ; n > 0; n-- {
			if err := item(); err != nil {
				return err
			}
		}
	} else {
		for {
			if d.pos >= len(d.in) {
				return malformed("unexpected end of input")
			}
			if d.in[d.pos] == cborBreak {
				d.pos++
				break
			}
			if err := item(); err != nil {
				return err
			}
		}
	}
	d.depth--
	return nil
}

func (d *cborDecoder) Map(member func(key []byte) error) error {
	return d.each(Map, func() error {
		key, err := d.stringBytes(String)
		if err != nil {
			return err
		}
		return member(key)
	})
}

func (d *cborDecoder) Array(element func() error) error { return d.each(Array, element) }

func (d *cborDecoder) Skip() error {
	switch d.Peek() {
	case Map:
		// Keys may be of any kind. Only the names of known fields must be text.
		return d.each(Map, func() error {
			if err := d.Skip(); err != nil {
				return err
			}
			return d.Skip()
		})
	case Array:
		return d.each(Array, d.Skip)
	case String, Bytes:
		_, err := d.stringBytes(d.Peek())
		return err
	case Number:
		_, _, _, err := d.number()
		return err
	case Bool, Null:
		d.pos++
		return nil
	default:
		return d.skipOther()
	}
}

// skipOther consumes a simple value that has no meaning in the API.
func (d *cborDecoder) skipOther() error {
	if err := d.want(Null); d.tower || d.pos >= len(d.in) || d.in[d.pos]&0xe0 != cborOther {
		return err
	}
	first, _, err := d.head()
	if err == nil && first == cborBreak { // unexpected break
		err = malformed("unexpected break at offset %d", d.pos-1)
	}
	return err
}

func (d *cborDecoder) End() error {
	if d.pos != len(d.in) {
		return malformed("%d bytes follow the value", len(d.in)-d.pos)
	}
	return nil
}

// appendCBORHead appends the head of an item: its major type and its argument n.
func appendCBORHead(dst []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(dst, major|byte(n))
	case n <= math.MaxUint8:
		return append(dst, major|24, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, major|25), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, major|26), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, major|27), n)
}
