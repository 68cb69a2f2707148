// Package codec reads and writes the two body formats of the Kinesis API, JSON
// 1.1 and CBOR 1.1, behind one pair of types: a [Decoder] that pulls values out
// of a request and an [Encoder] that appends an answer to a buffer.
//
// Nothing here uses reflection: a page of ten thousand records is encoded
// straight into the buffer that is sent. Input is hostile until proven
// otherwise, so every length is checked against the bytes that are there and
// nesting is bounded.
package codec

import (
	"errors"
	"fmt"
	"time"
)

// Format is a body format.
type Format uint8

// The formats, and the content types they go by.
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

// maxDepth bounds the nesting of a body. The deepest request of the API needs
// five levels.
const maxDepth = 32

// ErrFormat is wrapped by every error a Decoder returns for a body that is
// malformed or holds a value of another type than the member has.
var ErrFormat = errors.New("malformed body")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrFormat}, args...)...)
}

// Kind is the type of the next value of a Decoder.
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

// A Decoder pulls the values of one body, in order. Each method but Peek
// consumes one whole value.
type Decoder interface {
	// Peek tells the kind of the next value without consuming it.
	Peek() Kind
	// Skip consumes a value of any kind.
	Skip() error
	Bool() (bool, error)
	// Int drops what stands behind a decimal point.
	Int() (int64, error)
	// Float tells also whether the number was written as an integer.
	Float() (f float64, whole bool, err error)
	// Text returns a copy, so it outlives the body.
	Text() (string, error)
	// Blob returns memory that belongs to the caller and outlives the body.
	Blob() ([]byte, error)
	// Time returns a timestamp with millisecond precision.
	Time() (time.Time, error)
	// Map calls member for each key; member consumes the value. The key is
	// valid until member returns.
	Map(member func(key []byte) error) error
	// Array calls element for each element; element consumes it.
	Array(element func() error) error
	// End reports an error if anything follows the value that was read.
	End() error
}

// NewDecoder returns a decoder of body, which it neither keeps nor changes.
func NewDecoder(f Format, body []byte) Decoder {
	if f == CBOR {
		return &cborDecoder{in: body}
	}
	return &jsonDecoder{in: body}
}

// blobs hands out memory for the blobs of one body from a single allocation,
// so that a request of five hundred records costs one and not five hundred.
type blobs struct{ free []byte }

// take returns an empty slice with room for n bytes. total is how much the
// whole body can hold at most.
func (b *blobs) take(n, total int) []byte {
	if b.free == nil || cap(b.free) < n {
		b.free = make([]byte, 0, max(n, total))
	}
	out := b.free[0:0:n]
	b.free = b.free[n:n:cap(b.free)]
	return out
}

// Opt is a member that may be absent.
type Opt[T any] struct {
	V   T
	Set bool
}

// Some returns a member that is present.
func Some[T any](v T) Opt[T] { return Opt[T]{V: v, Set: true} }

// Field binds a member's name to where its value goes: a pointer to an Opt of
// string, int64, bool, []byte or time.Time, to a []string, to a
// map[string]string, nested Fields, or a func(Decoder) error.
type Field struct {
	Name string
	Into any
}

// Fields are the members of one structure.
type Fields []Field

// Decode reads one structure. Members without a field are skipped, null counts
// as absent, and a member given twice has its last value. A value of another
// type than its member has is a [*TypeError].
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

// one reads a value of a type, and tells whether it could.
func one[T any](d Decoder, t Type, read func(Decoder) (T, error)) (v T, ok bool, err error) {
	if err = Expect(d, t); err == nil {
		v, err = read(d)
	}
	return v, err == nil, err
}

// timeOfMillis guards against times that other code could not format.
func timeOfMillis(ms float64) (time.Time, error) {
	const limit = 253402300800000 // the year 10000
	if !(ms > -limit && ms < limit) {
		return time.Time{}, malformed("timestamp out of range")
	}
	return time.UnixMilli(int64(ms)), nil
}
