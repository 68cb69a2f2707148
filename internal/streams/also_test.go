package streams

import (
	"errors"
	"fmt"
	"testing"
)

func TestAlso(t *testing.T) {
	public, cause := errors.New("weir: the stream does not exist"), errors.New("stream s not found")
	err := Also("weir: ", fmt.Errorf("%w: %w", ErrNoStream, cause), public)
	if !errors.Is(err, public) || !errors.Is(err, ErrNoStream) || !errors.Is(err, cause) {
		t.Errorf("%v does not wrap each error", err)
	}
	if got, want := err.Error(), "weir: the stream does not exist: stream s not found"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
