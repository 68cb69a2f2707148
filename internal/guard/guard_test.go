package guard

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestCall(t *testing.T) {
	t.Parallel()
	if err := Call(func() error { return nil }); err != nil {
		t.Errorf("a call without an error: %v", err)
	}
	if err := Call(func() error { return io.EOF }); !errors.Is(err, io.EOF) {
		t.Errorf("a call that fails: %v", err)
	}
	err := Call(func() error { panic(io.ErrUnexpectedEOF) })
	var p *Panic
	if !errors.As(err, &p) || !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(p.Stack, "TestCall") {
		t.Errorf("a call that panics: %v", err)
	}
	if err := Call(func() error { panic("a bug") }); err.Error() != "a call panicked: a bug" {
		t.Errorf("a call that panics with a text: %v", err)
	}
}
