package dashboard

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/lettertext"
	"github.com/weir-go/weir/payload"
)

// Limits of a shown payload, in bytes.
const (
	mostPayload  = 4 << 10
	mostUnpacked = 1 << 20
)

// letterGroup contains the dead letters with the same reason, and with errors of the same
// [lettertext.Shape].
type letterGroup struct {
	Reason deadletter.Reason
	Error  string      // of the newest dead letter
	Rows   []letterRow // the newest first
}

// Newest and Oldest return the dead letters that were put last and first.
func (g letterGroup) Newest() letterRow { return g.Rows[0] }
func (g letterGroup) Oldest() letterRow { return g.Rows[len(g.Rows)-1] }

// groupLetters groups dead letters by reason and shape of the error. The largest group comes first.
func groupLetters(rows []letterRow) (all []letterGroup) {
	type key struct {
		reason deadletter.Reason
		shape  string
	}
	at := map[key]int{}
	for _, r := range rows {
		k := key{r.Reason, lettertext.Shape(r.Error)}
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

// shownPayload is a payload for people.
type shownPayload struct {
	Kind, Text string
	Cut        bool // the text is only the beginning
}

// payloadOf returns the payload of a dead letter for people. JSON is indented, other text is
// unchanged, and everything else becomes hexadecimal digits. Data with the mark of a codec are
// decoded.
func payloadOf(data []byte, codecs map[string]payload.Codec) shownPayload {
	p := shownPayload{Kind: fmt.Sprintf("%d B, ", len(data))}
	decoded := lettertext.Decode(data, codecs)
	if decoded.Codec != "" {
		p.Kind += fmt.Sprintf("%s of %d B, ", decoded.Codec, len(decoded.Data))
	}
	p.Kind, p.Text = p.Kind+decoded.Kind, decoded.Text
	if decoded.Binary {
		p.Text = hex.Dump(decoded.Data[:min(len(decoded.Data), mostPayload/4)])
		p.Cut = len(decoded.Data) > mostPayload/4
	}
	if len(p.Text) > mostPayload {
		p.Text, p.Cut = strings.ToValidUTF8(p.Text[:mostPayload], ""), !decoded.Binary || p.Cut
	}
	lines := strings.Split(p.Text, "\n")
	for i := range lines {
		lines[i] = clean(strings.ReplaceAll(strings.TrimSuffix(lines[i], "\r"), "\t", "    "))
	}
	p.Text = strings.Join(lines, "\n")
	return p
}
