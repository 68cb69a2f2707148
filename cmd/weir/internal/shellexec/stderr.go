package shellexec

import (
	"fmt"
	"io"
	"sync"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
)

// standardError returns where the standard error of a command goes. On a terminal, control
// characters are escaped: a command that prints parts of records could otherwise change the title
// of the window, or overwrite the log lines of the worker.
func standardError(t cli.Terminal) io.Writer {
	if !cli.IsTerminal(t.Err) {
		return t.Err
	}
	return &visibleWriter{to: t.Err}
}

// visibleWriter escapes control characters other than line breaks and tabs. A carriage return
// becomes a line break. It is safe for concurrent use.
type visibleWriter struct {
	to io.Writer

	mu   sync.Mutex
	lead bool // the last byte was the first byte of U+0080 to U+00BF
	cr   bool // the last byte was a carriage return
}

func (w *visibleWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	shown := make([]byte, 0, len(p)+16)
	for _, b := range p {
		lead, after := w.lead, w.cr
		w.lead, w.cr = b == 0xc2, b == '\r'
		switch {
		case lead && b >= 0x80 && b < 0xa0: // a control character of two bytes
			shown = fmt.Appendf(shown, `\u%04x`, b)
			continue
		case lead:
			shown = append(shown, 0xc2)
		}
		switch {
		case b == 0xc2: // written with the next byte
		case b == '\n' && after: // the line break is written
		case b == '\n', b == '\r':
			shown = append(shown, '\n')
		case b != '\t' && (b < 0x20 || b == 0x7f):
			shown = fmt.Appendf(shown, `\x%02x`, b)
		default:
			shown = append(shown, b)
		}
	}
	if _, err := w.to.Write(shown); err != nil {
		return 0, err
	}
	return len(p), nil
}
