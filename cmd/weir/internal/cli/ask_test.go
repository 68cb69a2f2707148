package cli

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/explain"
)

func TestConfirm(t *testing.T) {
	for typed, want := range map[string]bool{"billing\n": true, " billing \r\n": true, "billing": true, "yes\n": false, "\n": false, "": false} {
		said := &strings.Builder{}
		err := Confirm(t.Context(), Terminal{In: strings.NewReader(typed), Err: said}, "Sure?", "billing")
		if (err == nil) != want || said.String() != "Sure? Type billing to do so: " {
			t.Errorf("%q is %v, after %q", typed, err, said)
		}
	}
	// Ctrl-C ends the wait for an answer.
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(explain.ErrInterrupted)
	never, end := io.Pipe()
	defer func() { _ = end.Close() }()
	if err := Confirm(ctx, Terminal{In: never, Err: io.Discard}, "Sure?", "yes"); err == nil || explain.Error(err) != "nothing was changed: it was interrupted" {
		t.Errorf("interrupted: %v", err)
	}
}
