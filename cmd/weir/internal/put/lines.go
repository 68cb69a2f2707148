// Package put sends lines to a stream with a producer, and reports how far it got.
package put

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weir-go/weir/cmd/weir/internal/codecs"
)

// lines converts the lines of an input to records, one at a time. The input may be larger than the
// memory, or endless.
type lines struct {
	in      *bufio.Reader
	field   string // its value is the partition key; "" gives each record a random key
	limit   int    // bytes of data and key in one record
	longest int    // bytes of a line
	// encode replaces the data of each line. By default lines stay as they are.
	encode  func(context.Context, []byte) ([]byte, error)
	read    int64 // bytes up to now
	number  int64 // of the line that was read last
	skipped int64 // empty lines

	skipLarge bool // lines that are too large are skipped; by default they are an error
	large     tooLarge
}

func newLines(in io.Reader, field string, limit int) *lines {
	return &lines{in: bufio.NewReaderSize(in, 256<<10), field: field, limit: limit, longest: limit}
}

// compress makes next encode each line. The limit for records applies to the encoded lines.
func (l *lines) compress(encode func(context.Context, []byte) ([]byte, error)) {
	l.encode, l.longest = encode, codecs.MostBytes
}

// next returns the record of the next line that is not empty, or io.EOF. Any other error names the
// line and its problem.
func (l *lines) next() (Entry, error) {
	for {
		line, err := l.line()
		if l.passes(err) {
			continue
		}
		if err != nil {
			return Entry{}, err
		}
		if len(line) == 0 {
			l.skipped++
			continue
		}
		e := Entry{Data: line, Line: l.number, Given: len(line)}
		if l.field == "" {
			e.Key = strconv.FormatUint(rand.Uint64(), 36)
		} else if e.Key, err = keyOf(line, l.field); err != nil {
			return e, fmt.Errorf("line %d: %w", l.number, err)
		}
		if l.encode != nil && len(line) <= l.longest {
			if e.Data, err = l.encode(context.Background(), line); err != nil {
				return e, fmt.Errorf("line %d: %w", l.number, err)
			}
		}
		if e.Size() <= l.limit {
			return e, nil
		}
		if err = l.tooLarge(); !l.passes(err) {
			return e, err
		}
	}
}

var errTooLarge = errors.New("is too large")

func (l *lines) tooLarge() error {
	also := ""
	if l.encode != nil {
		also = ", also when it is compressed"
	}
	return fmt.Errorf("line %d %w%s: the stream takes records of up to %d KiB, the key included",
		l.number, errTooLarge, also, l.limit>>10)
}

// passes reports whether an error is about a line that is too large and must be skipped. It counts
// that line.
func (l *lines) passes(err error) bool {
	if !l.skipLarge || !errors.Is(err, errTooLarge) {
		return false
	}
	l.large.add(l.number)
	return true
}

// line returns the next line without its newline, and without a carriage return before the newline.
func (l *lines) line() ([]byte, error) {
	var line []byte
	l.number++
	for {
		part, err := l.in.ReadSlice('\n')
		l.read += int64(len(part))
		line = append(line, part...) // a copy: records outlive the buffer
		switch {
		case err == nil:
			return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
		case errors.Is(err, bufio.ErrBufferFull):
			if len(line) > l.longest+2 && !l.skipLarge {
				return nil, l.tooLarge()
			}
			if len(line) > l.longest+2 {
				return nil, l.skipRest()
			}
		case errors.Is(err, io.EOF) && len(line) > 0:
			return bytes.TrimSuffix(line, []byte("\r")), nil
		case errors.Is(err, io.EOF):
			l.number--
			return nil, io.EOF
		default:
			return nil, fmt.Errorf("the input cannot be read after line %d: %w", l.number-1, err)
		}
	}
}

// skipRest reads the rest of a line that is too large. It returns the error for the size of the
// line, or an error of the input.
func (l *lines) skipRest() error {
	for {
		part, err := l.in.ReadSlice('\n')
		l.read += int64(len(part))
		switch {
		case err == nil, errors.Is(err, io.EOF):
			return l.tooLarge()
		case !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("the input cannot be read after line %d: %w", l.number-1, err)
		}
	}
}

// keyOf returns the partition key in a field of a JSON object. A string is used without its quotes.
// A number or boolean is used as it is written.
func keyOf(line []byte, field string) (string, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(line, &object); err != nil || object == nil {
		return "", fmt.Errorf("it is not a JSON object, so --key %s finds nothing in it", field)
	}
	raw, found := object[field]
	if !found {
		return "", fmt.Errorf("there is no field %q for the partition key", field)
	}
	var key string
	switch raw[0] {
	case '"':
		if err := json.Unmarshal(raw, &key); err != nil {
			return "", fmt.Errorf("its field %q cannot be read: %w", field, err)
		}
	case '{', '[', 'n':
		return "", fmt.Errorf("its field %q is not a text, number or boolean, so it cannot be a partition key", field)
	default:
		key = string(raw)
	}
	// Decoding replaces bytes that are not UTF-8, and halves of surrogate pairs, by U+FFFD. Several
	// different keys would then become the same key.
	if !utf8.Valid(raw) || strings.Count(key, "\uFFFD") != bytes.Count(raw, []byte("\uFFFD"))+replacementEscapes(raw) {
		return "", fmt.Errorf("its field %q is not valid Unicode, so it cannot be a partition key", field)
	}
	if n := utf8.RuneCountInString(key); n < 1 || n > 256 {
		return "", fmt.Errorf("its field %q has %d characters, a partition key 1 to 256", field, n)
	}
	return key, nil
}

// replacementEscapes counts the escapes of U+FFFD in a JSON string.
func replacementEscapes(raw []byte) (n int) {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if i++; raw[i] == 'u' && i+5 <= len(raw) && strings.EqualFold(string(raw[i+1:i+5]), "fffd") {
			n++
		}
	}
	return n
}
