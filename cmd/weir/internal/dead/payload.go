package dead

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/codecs"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/lettertext"
	"github.com/weir-go/weir/payload"
)

const (
	// mostUnpacked limits the size of a payload after it was unpacked.
	mostUnpacked = 16 << 20
	// mostHex limits the bytes that are shown in hexadecimal digits.
	mostHex = 4 << 10
)

// shownCodecs returns the codecs of shown payloads.
var shownCodecs = sync.OnceValue(func() map[string]payload.Codec { return codecs.Compressed(mostUnpacked) })

// letterText formats one dead letter with its payload.
func letterText(i *deadletter.Item) string {
	var b bytes.Buffer
	line := func(label, text string) {
		if text != "" {
			_ = cli.Textf(&b, "%-15s %s\n", label, text)
		}
	}
	when := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	line("ID", i.ID)
	line("application", i.App)
	if r, ok := i.Queue(); ok {
		line("queue", r.Queue)
		line("record ID", r.ID)
		if r.Sub > 0 {
			line("in aggregate", "record "+strconv.Itoa(r.Sub))
		}
	} else {
		line("stream", i.Stream)
		line("shard", i.Shard)
		line("sequence number", i.SequenceNumber)
		if i.Position != i.SequenceNumber {
			line("position", i.Position)
		}
	}
	line("key", i.PartitionKey)
	line("arrived", when(i.Arrived))
	line("dead-lettered", when(i.GivenUp)+" by worker "+i.Worker)
	reason := string(i.Reason) + ", after " + cli.Count(i.Attempts, "attempt")
	if i.Attempts > 0 {
		reason += " from " + when(i.FirstFailure) + " to " + when(i.LastFailure)
	}
	line("reason", reason)
	if i.Together > 1 {
		line("together", cli.Count(i.Together, "record")+" failed together")
	}
	state := string(i.State)
	if !i.Since.IsZero() {
		state += " since " + when(i.Since)
	}
	line("state", state)
	lines := cli.Lines(cli.Visible(explain.OneLine(i.Error)), cli.HelpColumns-16)
	for n, text := range lines {
		label := ""
		if n == 0 {
			label = "error"
		}
		fmt.Fprintf(&b, "%-15s %s\n", label, text)
	}
	line("error type", i.ErrorType)
	if i.Stack != "" {
		b.WriteString("\nstack:\n" + cli.VisibleLines(strings.TrimRight(i.Stack, "\n")) + "\n")
	}
	what, text := PayloadText(i.Data)
	fmt.Fprintf(&b, "\npayload: %s, %s\n%s", figures.Bytes(int64(len(i.Data))), what, text)
	return b.String()
}

// PayloadText returns a payload for people, and its format. JSON is indented, control characters in
// other text become visible, and everything else becomes hexadecimal digits.
func PayloadText(data []byte) (what, text string) {
	p := lettertext.Decode(data, shownCodecs())
	what = p.Kind
	if p.Codec != "" {
		what = p.Codec + " of " + figures.Bytes(int64(len(p.Data))) + ", " + what
	}
	switch {
	case p.Binary:
		text = hex.Dump(p.Data[:min(len(p.Data), mostHex)])
		if more := len(p.Data) - mostHex; more > 0 {
			text += fmt.Sprintf("and %s more: --data writes all of them\n", cli.Count(more, "byte"))
		}
	case p.Text != "":
		text = cli.VisibleLines(strings.TrimRight(p.Text, "\n")) + "\n"
	}
	return what, text
}
