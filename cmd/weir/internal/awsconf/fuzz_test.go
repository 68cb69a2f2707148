package awsconf

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
)

// FuzzEndpoint parses any text as a value of --endpoint. The text must be accepted, or refused with
// a usage error of one line.
func FuzzEndpoint(f *testing.F) {
	for _, s := range []string{"", "http://127.0.0.1:4567", "http://u:p@h/?q", "[::1]:0", "8080", "https://localhost"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		err := checkEndpoint("--endpoint", s)
		if usage := (cli.UsageError{}); err != nil && (!errors.As(err, &usage) || strings.ContainsAny(explain.OneLine(err.Error()), "\n\r") || strings.Contains(err.Error(), "%!")) {
			t.Errorf("%q: %v", s, err)
		}
		IsLoopback(s)
	})
}
