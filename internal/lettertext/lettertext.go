// Package lettertext prepares errors and payloads of dead letters for people. The command and the
// web page share it, so both group the same errors and recognize the same payloads.
package lettertext

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weir-go/weir/payload"
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
	Data   []byte // the decoded payload; it may share memory with the argument of Decode
	Codec  string // the name of the codec that decoded Data, or ""
	Binary bool   // Text is "", because the payload is neither JSON nor text
}

// Decode returns a payload for people. It decodes data with the mark of one of the codecs. Data
// that cannot be decoded stay as they are.
func Decode(data []byte, codecs map[string]payload.Codec) (p Payload) {
	p.Data = data
	for _, name := range slices.Sorted(maps.Keys(codecs)) {
		decoded, marked, err := codecs[name].Decode(context.Background(), data)
		if marked && err == nil {
			p.Data, p.Codec = decoded, name
			break
		}
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
