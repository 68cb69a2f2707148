package consume

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
)

// TestEnded checks the error of the command after its worker has ended.
func TestEnded(t *testing.T) {
	t.Parallel()
	notSaved := fmt.Errorf("weir: application a: %w: %w", weir.ErrNotSaved, syscall.ECONNREFUSED)
	closed := fmt.Errorf("standard output cannot be written: %w", syscall.EPIPE)
	for _, c := range []struct {
		name string
		err  error
		want string // beginning of the error; "" for no error
	}{
		{"all was kept", nil, ""},
		{"progress was not saved", notSaved, "application a: "},
		{"standard output was closed", closed, ""},
		{"it was closed, and progress was not saved", errors.Join(closed, notSaved), "standard output cannot be written"},
		{"another error", io.ErrUnexpectedEOF, "unexpected EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := ended(cli.Terminal{Err: io.Discard}, stores.Store{}, c.err)
			if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(explain.Error(err), c.want) {
				t.Errorf("returned %v", err)
			}
			if saved := !errors.Is(c.err, weir.ErrNotSaved); saved == errors.Is(err, weir.ErrNotSaved) {
				t.Errorf("returned %v", err)
			}
		})
	}
}
