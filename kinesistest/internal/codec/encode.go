package codec

import (
	"encoding/base64"
	"strconv"
	"time"
)

// An Encoder appends one value to a buffer, in JSON or CBOR. It writes a structure with
//
//	e.Map()
//	e.Key("Name").Text("value")
//	e.End()
//
// and a list of n elements with e.Array(n), then e.Elem() before each element, then e.End(). The
// methods return no errors, because a wrong order of calls is a bug of the caller.
type Encoder struct {
	format     Format
	indefinite bool
	buf        []byte
	open       []container
}

// container is an open structure or list.
type container struct {
	head  int // offset of the container's first byte
	count int
	list  bool
}

// NewEncoder returns an encoder that appends to buf. If indefinite is true, CBOR structures and
// lists have no length at their beginning. They end with a break instead, as streaming writers
// produce them.
func NewEncoder(f Format, buf []byte, indefinite bool) *Encoder {
	return &Encoder{format: f, indefinite: indefinite, buf: buf, open: make([]container, 0, 8)}
}

// Bytes returns the original content of the buffer followed by the encoded value.
func (e *Encoder) Bytes() []byte { return e.buf }

// Format returns the output format.
func (e *Encoder) Format() Format { return e.format }

// Grow makes room for n more bytes.
func (e *Encoder) Grow(n int) {
	if cap(e.buf)-len(e.buf) < n {
		e.buf = append(make([]byte, 0, len(e.buf)+n), e.buf...)
	}
}

// Map begins a structure of at most 23 fields.
func (e *Encoder) Map() {
	e.open = append(e.open, container{head: len(e.buf)})
	switch {
	case e.format == JSON:
		e.buf = append(e.buf, '{')
	case e.indefinite:
		e.buf = append(e.buf, cborMap|cborIndefinite)
	default:
		e.buf = append(e.buf, cborMap) // End fills in the length
	}
}

// Array begins a list of n elements.
func (e *Encoder) Array(n int) {
	e.open = append(e.open, container{head: len(e.buf), list: true})
	switch {
	case e.format == JSON:
		e.buf = append(e.buf, '[')
	case e.indefinite:
		e.buf = append(e.buf, cborArray|cborIndefinite)
	default:
		e.buf = appendCBORHead(e.buf, cborArray, uint64(n))
	}
}

// End ends the innermost open structure or list.
func (e *Encoder) End() {
	c := e.open[len(e.open)-1]
	e.open = e.open[:len(e.open)-1]
	switch {
	case e.format == JSON && c.list:
		e.buf = append(e.buf, ']')
	case e.format == JSON:
		e.buf = append(e.buf, '}')
	case e.indefinite:
		e.buf = append(e.buf, cborBreak)
	case !c.list:
		e.buf[c.head] |= byte(c.count)
	}
}

// Key begins a field; a value must follow.
func (e *Encoder) Key(name string) *Encoder {
	c := &e.open[len(e.open)-1]
	c.count++
	if e.format == JSON {
		if c.count > 1 {
			e.buf = append(e.buf, ',')
		}
		e.buf = append(e.buf, '"')
		e.buf = append(e.buf, name...)
		e.buf = append(e.buf, '"', ':')
		return e
	}
	e.buf = appendCBORHead(e.buf, cborText, uint64(len(name)))
	e.buf = append(e.buf, name...)
	return e
}

// Elem begins an element of a list; a value must follow.
func (e *Encoder) Elem() *Encoder {
	c := &e.open[len(e.open)-1]
	if c.count++; e.format == JSON && c.count > 1 {
		e.buf = append(e.buf, ',')
	}
	return e
}

// Text writes a string.
func (e *Encoder) Text(s string) {
	if e.format == JSON {
		e.buf = appendJSONString(e.buf, s)
		return
	}
	e.buf = appendCBORHead(e.buf, cborText, uint64(len(s)))
	e.buf = append(e.buf, s...)
}

// Blob writes bytes: base64 in JSON, a byte string in CBOR.
func (e *Encoder) Blob(b []byte) {
	if e.format == JSON {
		e.buf = append(e.buf, '"')
		e.buf = base64.StdEncoding.AppendEncode(e.buf, b)
		e.buf = append(e.buf, '"')
		return
	}
	e.buf = appendCBORHead(e.buf, cborBytes, uint64(len(b)))
	e.buf = append(e.buf, b...)
}

// Int writes an integer.
func (e *Encoder) Int(n int64) {
	switch {
	case e.format == JSON:
		e.buf = strconv.AppendInt(e.buf, n, 10)
	case n < 0:
		e.buf = appendCBORHead(e.buf, cborNegInt, uint64(-1-n))
	default:
		e.buf = appendCBORHead(e.buf, cborUint, uint64(n))
	}
}

// Bool writes true or false.
func (e *Encoder) Bool(v bool) {
	switch {
	case e.format == JSON:
		e.buf = strconv.AppendBool(e.buf, v)
	case v:
		e.buf = append(e.buf, cborTrue)
	default:
		e.buf = append(e.buf, cborFalse)
	}
}

// Null writes null.
func (e *Encoder) Null() {
	if e.format == JSON {
		e.buf = append(e.buf, "null"...)
		return
	}
	e.buf = append(e.buf, cborNull)
}

// Time writes a timestamp: in JSON as seconds with three decimals, in CBOR as milliseconds under
// tag 1.
func (e *Encoder) Time(t time.Time) { e.Millis(t.UnixMilli()) }

// Seconds writes a timestamp given in seconds since the epoch, as in Smithy's RPC protocol.
func (e *Encoder) Seconds(n int64) {
	if e.format == CBOR {
		e.buf = append(e.buf, cborTag|1)
	}
	e.Int(n)
}

// Millis writes a timestamp given in milliseconds since the epoch.
func (e *Encoder) Millis(ms int64) {
	if e.format == CBOR {
		e.buf = append(e.buf, cborTag|1)
		e.Int(ms)
		return
	}
	if ms < 0 {
		e.buf = append(e.buf, '-')
		ms = -ms
	}
	e.buf = strconv.AppendInt(e.buf, ms/1000, 10)
	frac := ms % 1000
	e.buf = append(e.buf, '.', byte('0'+frac/100), byte('0'+frac/10%10), byte('0'+frac%10))
}
