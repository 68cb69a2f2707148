package put

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
)

// tooLarge counts lines that were skipped because they are too large.
type tooLarge struct{ lines, first atomic.Int64 }

func (c *tooLarge) add(line int64) {
	c.first.CompareAndSwap(0, line)
	c.lines.Add(1)
}

// seen returns the counts so far. Another goroutine may still read the input.
func (c *tooLarge) seen() largeLines { return largeLines{c.lines.Load(), c.first.Load()} }

// largeLines is the number of skipped lines that are too large, and the number of the first one.
type largeLines struct{ lines, first int64 }

// String returns the end of a sentence. It is empty if no line was skipped.
func (l largeLines) String() string {
	if l.lines == 0 {
		return ""
	}
	return fmt.Sprintf(", %s skipped as too large (first: line %d)", cli.Count(l.lines, "line"), l.first)
}

func howFar(sum Summary, large largeLines) string {
	s := cli.Count(sum.Records, "record") + cli.Plural(int(sum.Records), " was", " were") + " put"
	switch {
	case sum.Records == 0:
		s = "nothing was put"
	case sum.Beyond > 0:
		s += fmt.Sprintf(": every line up to %d, and %s after that", sum.Through, figures.Count(sum.Beyond))
	default:
		s += fmt.Sprintf(": every line up to %d", sum.Through)
	}
	return s + large.String()
}

func (o *putOptions) report(
	t cli.Terminal, sum Summary, empty int64, large largeLines, took time.Duration,
) error {
	reasons := sum.reasons()
	if o.out == cli.FormatJSON {
		return json.NewEncoder(t.Out).Encode(struct {
			Records int64             `json:"records"`
			Bytes   int64             `json:"bytes"`
			Given   int64             `json:"line_bytes"`
			Retries uint64            `json:"retries"`
			Reasons map[string]uint64 `json:"retry_reasons"`
			Empty   int64             `json:"empty_lines"`
			Large   int64             `json:"too_large_lines"`
			Stored  uint64            `json:"stream_records"`
			Seconds float64           `json:"seconds"`
			Shards  map[string]int64  `json:"shards"`
		}{
			sum.Records, sum.Bytes, sum.Given, sum.Retries, reasons, empty, large.lines, sum.StreamRecords,
			took.Seconds(), sum.Shards,
		})
	}
	var shards string
	for _, id := range slices.Sorted(maps.Keys(sum.Shards)) {
		shards += fmt.Sprintf("  %s  %s\n", id, figures.Count(sum.Shards[id]))
	}
	skipped := ""
	if empty > 0 {
		skipped = fmt.Sprintf(", %s skipped", cli.Count(empty, "empty line"))
	}
	size := figures.Bytes(sum.Bytes)
	if o.codec.Encode() != nil {
		size = "compressed from " + figures.Bytes(sum.Given) + " to " + size
	}
	packed := ""
	if o.pack {
		packed = ", packed into " + cli.Count(int64(sum.StreamRecords), "record") + " of the stream"
	}
	_, err := fmt.Fprintf(t.Out, "%s (%s) put into %s in %s%s, %s sent again%s%s%s\n%s",
		cli.Count(sum.Records, "record"), size, o.stream, figures.Duration(took),
		packed, figures.Count(int64(sum.Retries)), resent(sum), skipped, large, shards)
	return err
}

// Reasons that are not codes of the service.
const (
	noAnswer   = "no answer"
	otherShard = "split or merge"
)

// reasons returns how many records were sent again for each reason: a code of the service, or one
// of the reasons above.
func (s Summary) reasons() map[string]uint64 {
	all := map[string]uint64{}
	for code, n := range s.Refusals {
		if code == "" {
			code = noAnswer
		}
		all[code] += n
	}
	if s.Misplaced > 0 {
		all[otherShard] = s.Misplaced
	}
	return all
}

// resent returns the reasons for which records were sent again, with counts if there are several.
func resent(sum Summary) string {
	reasons := sum.reasons()
	if len(reasons) == 0 {
		return ""
	}
	var texts []string
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		why := reason
		switch reason {
		case noAnswer:
			why = "the service did not answer"
		case otherShard:
			why = "a shard was split or merged"
		case "ProvisionedThroughputExceededException":
			why = "a shard takes 1 MiB and 1,000 records a second"
		}
		if len(reasons) > 1 {
			why += " (" + figures.Count(int64(reasons[reason])) + ")"
		}
		texts = append(texts, why)
	}
	return " because of: " + strings.Join(texts, ", ") + "; nothing was lost"
}
