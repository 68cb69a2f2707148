package dashboard

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weir-go/weir/deadletter"
)

// Limits of a shown payload, in bytes.
const (
	mostPayload  = 4 << 10
	mostUnpacked = 1 << 20
)

// letterGroup contains the dead letters with the same reason and error.
type letterGroup struct {
	Reason deadletter.Reason
	Error  string      // of the newest dead letter
	Rows   []letterRow // the newest first
}

// Newest and Oldest return the dead letters that were put last and first.
func (g letterGroup) Newest() letterRow { return g.Rows[0] }
func (g letterGroup) Oldest() letterRow { return g.Rows[len(g.Rows)-1] }

// idWord is a word of an error that may name one record, request or address.
var idWord = regexp.MustCompile(`[0-9A-Za-z_-]{8,}`)

// shapeOf returns an error without words that have digits and at least eight characters, so that
// errors about different records are equal.
func shapeOf(text string) string {
	return idWord.ReplaceAllStringFunc(text, func(word string) string {
		if strings.ContainsAny(word, "0123456789") {
			return "…"
		}
		return word
	})
}

// groupLetters groups dead letters by reason and error, the largest group first.
func groupLetters(rows []letterRow) (all []letterGroup) {
	type key struct {
		reason deadletter.Reason
		shape  string
	}
	at := map[key]int{}
	for _, r := range rows {
		k := key{r.Reason, shapeOf(r.Error)}
		if _, known := at[k]; !known {
			at[k] = len(all)
			all = append(all, letterGroup{Reason: r.Reason})
		}
		g := &all[at[k]]
		g.Rows = append(g.Rows, r)
	}
	for i := range all {
		g := &all[i]
		slices.SortStableFunc(g.Rows, func(a, b letterRow) int { return b.GivenUp.Compare(a.GivenUp) })
		g.Error = g.Rows[0].Error
	}
	slices.SortStableFunc(all, func(a, b letterGroup) int {
		return cmp.Or(cmp.Compare(len(b.Rows), len(a.Rows)), b.Newest().GivenUp.Compare(a.Newest().GivenUp))
	})
	return all
}

// payload is a payload for people.
type payload struct {
	Kind, Text string
	Cut        bool // the text is only the beginning
}

// payloadOf returns the payload of a dead letter for people. JSON is indented, other text is
// unchanged, and everything else becomes hexadecimal digits. Data that begins as gzip is unpacked.
func payloadOf(data []byte) payload {
	p := payload{Kind: fmt.Sprintf("%d B, ", len(data))}
	if unpacked, ok := gunzip(data); ok {
		data = unpacked
		p.Kind += fmt.Sprintf("gzip of %d B, ", len(data))
	}
	var indented bytes.Buffer
	switch {
	case len(data) == 0:
		p.Kind += "empty"
	case json.Valid(data) && json.Indent(&indented, data, "", "  ") == nil:
		p.Kind, p.Text = p.Kind+"JSON", indented.String()
	case utf8.Valid(data) && !bytes.ContainsFunc(data, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }):
		p.Kind, p.Text = p.Kind+"text", string(data)
	default:
		p.Kind, p.Text = p.Kind+"binary", hex.Dump(data[:min(len(data), mostPayload/4)])
		p.Cut = len(data) > mostPayload/4
	}
	if len(p.Text) > mostPayload {
		p.Text, p.Cut = strings.ToValidUTF8(p.Text[:mostPayload], ""), !strings.HasSuffix(p.Kind, "binary") || p.Cut
	}
	lines := strings.Split(p.Text, "\n")
	for i := range lines {
		lines[i] = clean(strings.ReplaceAll(strings.TrimSuffix(lines[i], "\r"), "\t", "    "))
	}
	p.Text = strings.Join(lines, "\n")
	return p
}

// gunzip unpacks data that begins as gzip. ok is false for other data, and for data that is damaged
// or too large.
func gunzip(data []byte) (unpacked []byte, ok bool) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b, 8}) {
		return nil, false
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, false
	}
	unpacked, err = io.ReadAll(io.LimitReader(r, mostUnpacked+1))
	return unpacked, err == nil && len(unpacked) <= mostUnpacked
}
