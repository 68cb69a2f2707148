// Package lettertext prepares errors and payloads of dead letters for people. The command and the
// web page share it, so both group the same errors and recognize the same payloads.
package lettertext

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// name matches a word of an error. A word that contains a digit may name one record, request or
// address.
var name = regexp.MustCompile(`[0-9A-Za-z_-]{8,}`)

// Shape returns an error in which each word with a digit and at least eight characters is replaced
// by an ellipsis, so that errors about different records are equal.
func Shape(text string) string {
	return name.ReplaceAllStringFunc(text, func(word string) string {
		if strings.ContainsAny(word, "0123456789") {
			return "…"
		}
		return word
	})
}

// Payload is a payload for people.
type Payload struct {
	Kind   string // "empty", "JSON", "text" or "binary"
	Text   string // indented JSON, or unchanged text, which may contain carriage returns and tabs
	Data   []byte // the unpacked payload; it may share memory with the argument of Decode
	Gzip   bool   // Data was unpacked
	Binary bool   // Text is "", because the payload is neither JSON nor text
}

// Decode returns a payload for people. It unpacks data that is compressed with gzip, unless the
// unpacked data would be larger than most bytes.
func Decode(data []byte, most int) (p Payload) {
	p.Data = data
	if unpacked, ok := gunzip(data, most); ok {
		p.Data, p.Gzip = unpacked, true
	}
	var indented bytes.Buffer
	switch {
	case len(p.Data) == 0:
		p.Kind = "empty"
	case json.Valid(p.Data) && json.Indent(&indented, p.Data, "", "  ") == nil:
		p.Kind, p.Text = "JSON", indented.String()
	case utf8.Valid(p.Data) && !bytes.ContainsFunc(p.Data, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }):
		p.Kind, p.Text = "text", string(p.Data)
	default:
		p.Kind, p.Binary = "binary", true
	}
	return p
}

// gunzip unpacks data that begins as gzip does. ok is false for other data, and for data that is
// damaged or larger than most.
func gunzip(data []byte, most int) (unpacked []byte, ok bool) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b, 8}) {
		return nil, false
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, false
	}
	unpacked, err = io.ReadAll(io.LimitReader(r, int64(most)+1))
	return unpacked, err == nil && len(unpacked) <= most
}
