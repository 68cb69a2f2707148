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

// The exit codes of every command.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
	ExitWrong  = 3 // the command found a fault

	ExitWarned   = 4 // doctor: it may become so
	ExitIntended = 5 // doctor: only faults that an operator caused on purpose
)

// Terminal has the input and the outputs of a command; tests use buffers.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
	// Asks says that a person answers questions on in although it is no terminal; tests set it.
	Asks bool
	// Interrupt does what Ctrl-C does, for screens that get the key instead of the signal.
	Interrupt func()
	// speech is shared by all copies of a terminal; run makes it if it is nil.
	speech *speech
}

// NewTerminal is a terminal of these three streams, for one command.
func NewTerminal(in io.Reader, out, err io.Writer) Terminal {
	return Terminal{In: in, Out: out, Err: err, speech: &speech{}}
}

// Note prints a message that is neither a result nor an error.
func (t Terminal) Note(format string, args ...any) { t.Say(slog.LevelInfo, format, args...) }

// Say is note with a level, which a log has.
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

// columns is the width of the screen that help goes to, between what can be laid out and what is
// read with ease.
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

// speech is how a command speaks on standard error: in plain lines, or in a log once it works for
// long.
type speech struct{ log atomic.Pointer[slog.Logger] }

// Silent is a terminal without input whose outputs are dropped.
var Silent = Terminal{Out: io.Discard, Err: io.Discard}
