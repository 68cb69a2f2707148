package local

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
)

// FuzzStreams parses any text as a value of --stream. The text must be accepted, or refused with a
// usage error of one line.
func FuzzStreams(f *testing.F) {
	for _, s := range []string{"flights:4", "flights", "a:b", "0%!", ":1", "a:0", "a:1:2", "a:on-demand", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		streams, err := parseStreams([]string{s})
		if usage := (cli.UsageError{}); err != nil && (!errors.As(err, &usage) || strings.ContainsAny(explain.OneLine(err.Error()), "\n\r") || strings.Contains(err.Error(), "%!") && !strings.Contains(s, "%!")) {
			t.Errorf("%q: %v", s, err)
		}
		if err == nil && (len(streams) != 1 || streams[0].shards < 1 && !strings.HasSuffix(s, ":on-demand")) {
			t.Errorf("%q is %v", s, streams)
		}
	})
}
