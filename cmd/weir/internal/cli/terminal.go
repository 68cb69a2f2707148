package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"

	"golang.org/x/term"

	"github.com/weir-go/weir/cmd/weir/internal/redact"
)

// Terminal contains the input and the outputs of a command. Tests use buffers.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
	// Asks means that a user answers questions on In, although In is not a terminal. Tests set it.
	Asks bool
	// Interrupt does the same as Ctrl-C. Full-screen programs call it, because they receive the key
	// instead of the signal.
	Interrupt func()
	width     int // of the screen that finally shows the output; 0 if that is Out
	// All copies of a Terminal share speech. Run creates it if it is nil.
	speech *speech
}

// NewTerminal returns a terminal with the given streams, for one command.
func NewTerminal(in io.Reader, out, err io.Writer) Terminal {
	return Terminal{In: in, Out: out, Err: err, speech: &speech{}}
}

// Note prints a message that is neither a result nor an error, with the level info.
func (t Terminal) Note(format string, args ...any) { t.Say(slog.LevelInfo, format, args...) }

// Say prints a message like Note, but with the given level. The level appears only in a log.
func (t Terminal) Say(level slog.Level, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if t.speech != nil {
		if log := t.speech.log.Load(); log != nil {
			log.Log(context.Background(), level, text)
			return
		}
	}
	fmt.Fprint(t.Err, escape(redact.Text("weir: "+text+"\n"), "\n\t"))
}

// columns returns the width for help: the width of the screen, limited to a readable range.
func (t Terminal) columns() int {
	if f, ok := t.Out.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return min(max(width, 40), 120)
		}
	}
	return HelpColumns
}

// canAsk reports whether a person can answer a question.
func (t Terminal) canAsk() bool { return t.Asks || IsTerminal(t.In) }

func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// speech determines how a command writes messages to standard error: as plain lines, or through a
// log if the command runs for a long time.
type speech struct{ log atomic.Pointer[slog.Logger] }

// Silent is a terminal without input. It discards all output.
var Silent = Terminal{Out: io.Discard, Err: io.Discard}
