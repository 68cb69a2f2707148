package group

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
)

// FuzzTo parses any text as a value of --to. The text must be accepted, or refused with a usage
// error of one line.
func FuzzTo(f *testing.F) {
	for _, s := range []string{"oldest", "latest", "15m", "-1ns", "2026-01-31T12:00:00Z", "17+3", "49590338271490256608559692538361571095921575989136588898", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, _, err := parseTo(s)
		if usage := (cli.UsageError{}); err != nil && (!errors.As(err, &usage) || strings.ContainsAny(explain.OneLine(err.Error()), "\n\r") || strings.Contains(err.Error(), "%!") && !strings.Contains(s, "%!")) {
			t.Errorf("%q: %v", s, err)
		}
	})
}
