package codec

import (
	"fmt"
	"strings"
)

// Type is the type of a field in the API.
type Type uint8

// The types of fields.
const (
	TypeBoolean Type = iota
	TypeInteger
	TypeString
	TypeBlob
	TypeTimestamp
	TypeList
	TypeMap
	TypeStructure
)

// A TypeError reports a value that cannot be converted to the type of its field. Its text is the
// text of the service's SerializationException. It wraps [ErrFormat].
type TypeError struct{ Text string }

func (e *TypeError) Error() string { return e.Text }
func (e *TypeError) Unwrap() error { return ErrFormat }

// javaClasses contains the Java class that the service names for a value of each kind.
var javaClasses = map[Kind]string{
	Bool:   "class java.lang.Boolean",
	Number: "class com.amazon.coral.value.json.numbers.TruncatingBigNumber",
	String: "class java.lang.String",
	Bytes:  "class java.nio.HeapByteBuffer",
}

// targets contains the service's names for the types of single values.
var targets = [...]string{
	TypeBoolean: "an Boolean", TypeInteger: "an Integer", TypeString: "an String", TypeBlob: "a Blob",
	TypeTimestamp: "milliseconds since epoch",
}

// kinds contains the kinds of values that can be converted to each type.
var kinds = [...][]Kind{
	TypeBoolean: {Bool, Number, String}, TypeInteger: {Number}, TypeString: {String}, TypeBlob: {String, Bytes},
	TypeTimestamp: {Number}, TypeList: {Array}, TypeMap: {Map}, TypeStructure: {Map},
}

// Expect returns a [*TypeError] if the next value cannot be converted to t. It does not report a
// missing value, because the method that reads the value does.
func Expect(d Decoder, t Type) error {
	got := d.Peek()
	if got == Invalid || got == Null {
		return nil
	}
	for _, k := range kinds[t] {
		if got == k {
			return nil
		}
	}
	return &TypeError{mismatch(got, t)}
}

func mismatch(got Kind, t Type) string {
	switch {
	case got == Array:
		return "Start of list found where not expected"
	case got == Map:
		return "Start of structure or map found where not expected."
	case t == TypeList:
		return "Expected list or null"
	case t == TypeMap:
		return "Expected map or null"
	case t == TypeStructure:
		return "Expected null"
	}
	return javaClasses[got] + " can not be converted to " + targets[t]
}

// boolean decodes a Boolean like the service does: it also accepts some words, and fractions.
func boolean(d Decoder) (bool, error) {
	switch d.Peek() {
	case String:
		word, err := d.Text()
		switch strings.ToUpper(word) {
		case "TRUE", "YES", "1":
			return true, err
		case "FALSE", "NO", "0":
			return false, err
		}
		if err != nil {
			return false, err
		}
		return false, &TypeError{fmt.Sprintf("'%s' can not be converted to an Boolean", strings.ToUpper(word))}
	case Number:
		f, whole, err := d.Float()
		if err == nil && whole {
			err = &TypeError{mismatch(Number, TypeBoolean)}
		}
		return f != 0, err
	}
	return d.Bool()
}

// badBase64 returns the error for a string that is not strict base64, with the service's text.
func badBase64(s []byte) *TypeError {
	why := "Invalid last non-pad Base64 character dectected" // the typo is the service's
	if len(s)%4 != 0 {
		why = fmt.Sprintf("Base64 encoded length is expected a multiple of 4 bytes but found: %d", len(s))
	} else if c, found := notBase64(string(s)); found {
		why = fmt.Sprintf("Invalid Base64 character: '%c'", c)
	}
	return &TypeError{fmt.Sprintf("'%s' can not be converted to a Blob: %s", s, why)}
}

// notBase64 returns the first invalid character of s. Padding before the end is invalid too.
func notBase64(s string) (rune, bool) {
	for i, c := range s {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '+', c == '/':
		case c == '=' && strings.Trim(s[i:], "=") == "":
		default:
			return c, true
		}
	}
	return 0, false
}
