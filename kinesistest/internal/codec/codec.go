// Package codec reads and writes the two body formats of the Kinesis API, JSON 1.1 and CBOR 1.1. A
// [Decoder] pulls values from a request. An [Encoder] appends an answer to a buffer. Both types
// support both formats.
//
// The package uses no reflection. An answer with ten thousand records is encoded directly into the
// buffer that is sent. Input is untrusted: every length is checked against the available bytes, and
// the nesting depth is limited.
package codec

import (
	"errors"
	"fmt"
	"time"
)

// Format is a body format.
type Format uint8

// The body formats.
const (
	JSON Format = iota
	CBOR
)

// ContentType returns the value of the Content-Type header for the format.
func (f Format) ContentType() string {
	if f == CBOR {
		return "application/x-amz-cbor-1.1"
	}
	return "application/x-amz-json-1.1"
}

func (f Format) String() string {
	if f == CBOR {
		return "cbor"
	}
	return "json"
}

// maxDepth is the maximum nesting depth of a body. The deepest request of the API has five levels.
const maxDepth = 32

// ErrFormat is wrapped by every error of a Decoder. Decoders fail on a malformed body and on a
// value of the wrong type.
var ErrFormat = errors.New("malformed body")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrFormat}, args...)...)
}

// Kind is the kind of the next value of a Decoder.
type Kind uint8

// The kinds of values.
const (
	Invalid Kind = iota
	Null
	Bool
	Number
	String
	Bytes
	Array
	Map
)

func (k Kind) String() string {
	return [...]string{"invalid", "null", "boolean", "number", "string", "bytes", "list", "structure"}[k]
}

// A Decoder pulls the values of one body, in order. Each method except Peek and End consumes one
// whole value.
type Decoder interface {
	// Peek returns the kind of the next value without consuming it.
	Peek() Kind
	// Skip consumes a value of any kind.
	Skip() error
	Bool() (bool, error)
	// Int consumes a number and drops the digits after the decimal point.
	Int() (int64, error)
	// Float consumes a number. whole reports whether the number was written as an integer.
	Float() (f float64, whole bool, err error)
	// Text consumes a string. The result is a copy, so it stays valid after the body is released.
	Text() (string, error)
	// Blob consumes a blob. The result belongs to the caller and stays valid after the body is
	// released.
	Blob() ([]byte, error)
	// Time consumes a timestamp, which has millisecond precision.
	Time() (time.Time, error)
	// Map calls member for each key of a structure; member must consume the value. The key is valid
	// until member returns.
	Map(member func(key []byte) error) error
	// Array calls element for each element; element must consume the element.
	Array(element func() error) error
	// End returns an error if the body continues after the value.
	End() error
}

// NewDecoder returns a decoder that reads body. The decoder does not change body, and its results
// do not refer to body.
func NewDecoder(f Format, body []byte) Decoder {
	if f == CBOR {
		return &cborDecoder{in: body}
	}
	return &jsonDecoder{in: body}
}

// blobs allocates the memory for all blobs of one body. A request of five hundred records then
// needs one allocation.
type blobs struct{ free []byte }

// take returns an empty slice with room for n bytes. total is an upper bound for all blobs of the
// body.
func (b *blobs) take(n, total int) []byte {
	if b.free == nil || cap(b.free) < n {
		b.free = make([]byte, 0, max(n, total))
	}
	out := b.free[0:0:n]
	b.free = b.free[n:n:cap(b.free)]
	return out
}

// Opt is a field value that may be absent.
type Opt[T any] struct {
	V   T
	Set bool
}

// Some returns an Opt that is present.
func Some[T any](v T) Opt[T] { return Opt[T]{V: v, Set: true} }

// Field connects the name of a field with the destination of its value. Into is one of the
// following: a pointer to an Opt of string, int64, bool, []byte or time.Time; a pointer to a
// []string or a map[string]string; nested Fields; or a func(Decoder) error.
type Field struct {
	Name string
	Into any
}

// Fields are the fields of one structure.
type Fields []Field

// Decode reads one structure. It skips unknown fields and treats null as absent. Of duplicate
// fields it uses the last one. A value of the wrong type causes a [*TypeError].
func (fs Fields) Decode(d Decoder) error {
	if err := Expect(d, TypeStructure); err != nil {
		return err
	}
	return d.Map(func(key []byte) error {
		for i := range fs {
			if fs[i].Name == string(key) {
				if d.Peek() == Null {
					return d.Skip()
				}
				return decodeInto(d, fs[i].Into)
			}
		}
		return d.Skip()
	})
}

func decodeInto(d Decoder, into any) (err error) {
	switch p := into.(type) {
	case *Opt[string]:
		p.V, p.Set, err = one(d, TypeString, Decoder.Text)
	case *Opt[int64]:
		p.V, p.Set, err = one(d, TypeInteger, Decoder.Int)
	case *Opt[bool]:
		p.V, p.Set, err = one(d, TypeBoolean, boolean)
	case *Opt[[]byte]:
		p.V, p.Set, err = one(d, TypeBlob, Decoder.Blob)
	case *Opt[time.Time]:
		p.V, p.Set, err = one(d, TypeTimestamp, Decoder.Time)
	case *[]string:
		*p = []string{}
		if err := Expect(d, TypeList); err != nil {
			return err
		}
		err = d.Array(func() error {
			s, _, err := one(d, TypeString, Decoder.Text)
			*p = append(*p, s)
			return err
		})
	case *map[string]string:
		*p = map[string]string{}
		if err := Expect(d, TypeMap); err != nil {
			return err
		}
		err = d.Map(func(key []byte) error {
			name := string(key)
			if d.Peek() == Null {
				return malformed("the value of %q is null", name)
			}
			s, _, err := one(d, TypeString, Decoder.Text)
			(*p)[name] = s
			return err
		})
	case Fields:
		err = p.Decode(d)
	case func(Decoder) error:
		err = p(d)
	default:
		err = fmt.Errorf("codec: no way to decode into %T", into)
	}
	return err
}

// one reads one value of type t. ok is false after an error.
func one[T any](d Decoder, t Type, read func(Decoder) (T, error)) (v T, ok bool, err error) {
	if err = Expect(d, t); err == nil {
		v, err = read(d)
	}
	return v, err == nil, err
}

// timeOfMillis converts milliseconds since the epoch to a time. It rejects times that other code
// could not format.
func timeOfMillis(ms float64) (time.Time, error) {
	const limit = 253402300800000 // the year 10000
	if !(ms > -limit && ms < limit) {
		return time.Time{}, malformed("timestamp out of range")
	}
	return time.UnixMilli(int64(ms)), nil
}
