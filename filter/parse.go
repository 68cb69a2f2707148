package filter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// These are the limits of a pattern.
const (
	mostBytes   = 64 << 10
	mostLevels  = 64
	mostClauses = 1000 // alternatives of all patterns together; $or multiplies them
)

// element is a parsed value of a pattern.
type element struct {
	is     what
	text   string // a string, a number, true, false or null
	items  []element
	fields []member
	at     int64 // offset of its first byte, or slightly before it
}

// member is a field of an object.
type member struct {
	name  string
	value element
}

type what uint8

const (
	aString what = iota
	aNumber
	aWord // true, false or null
	anArray
	anObject
)

// String returns the name of the kind for messages.
func (w what) String() string {
	return [...]string{"a string", "a number", "true, false or null", "an array", "an object"}[w]
}

// parse parses JSON. Of several fields with the same name, the last one counts.
func parse(s string) (element, error) {
	if len(s) > mostBytes {
		return element{}, fmt.Errorf("it has %d bytes, at most %d are allowed", len(s), mostBytes)
	}
	if strings.TrimSpace(s) == "" {
		return element{}, errors.New(`it is empty; a pattern is an object such as {"data": {"kind": ["order"]}}`)
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	e, err := parseNext(d, 0)
	if err == nil {
		if _, after := d.Token(); !errors.Is(after, io.EOF) {
			err = errors.New("something follows the pattern")
		}
	}
	if err != nil {
		// Versions of Go report truncated JSON in different ways.
		var syntax *json.SyntaxError
		cut := errors.As(err, &syntax) && syntax.Offset >= int64(len(s))
		if cut || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("it ends too early")
		}
		return element{}, fmt.Errorf("it is not JSON: byte %d: %w", d.InputOffset(), err)
	}
	return e, nil
}

func parseNext(d *json.Decoder, level int) (element, error) {
	if level > mostLevels {
		return element{}, fmt.Errorf("it has more than %d levels", mostLevels)
	}
	token, err := d.Token()
	if err != nil {
		return element{}, err
	}
	e := element{at: d.InputOffset()}
	switch t := token.(type) {
	case string:
		e.is, e.text = aString, t
	case json.Number:
		e.is, e.text = aNumber, t.String()
	case bool:
		e.is, e.text = aWord, strconv.FormatBool(t)
	case nil:
		e.is, e.text = aWord, "null"
	case json.Delim:
		e.is = anObject
		if t == '[' {
			e.is = anArray
		}
		for d.More() {
			name := ""
			if e.is == anObject {
				token, err := d.Token()
				if err != nil {
					return element{}, err
				}
				var ok bool
				if name, ok = token.(string); !ok {
					return element{}, errors.New("a field's name must be a string")
				}
			}
			v, err := parseNext(d, level+1)
			if err != nil {
				return element{}, err
			}
			if e.is == anArray {
				e.items = append(e.items, v)
			} else {
				e.set(name, v)
			}
		}
		if _, err := d.Token(); err != nil { // the closing bracket
			return element{}, err
		}
	}
	return e, nil
}

// set adds a field to an object, or replaces the field with the same name.
func (e *element) set(name string, v element) {
	for i := range e.fields {
		if e.fields[i].name == name {
			e.fields[i].value = v
			return
		}
	}
	e.fields = append(e.fields, member{name, v})
}
