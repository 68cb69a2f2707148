package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/explain"
)

// CanConfirm refuses a command that has to ask a question when standard input is not a terminal. If
// sure is true, no confirmation is needed.
func CanConfirm(cmd *cobra.Command, t Terminal, sure bool) error {
	if !sure && !t.canAsk() {
		return Usagef("%s cannot ask for confirmation without a terminal: add --yes if you are sure", cmd.CommandPath())
	}
	return nil
}

// Confirm asks for a word, and fails unless it is typed. Ctrl-C ends it.
func Confirm(ctx context.Context, t Terminal, question, word string) error {
	_ = Textf(t.Err, "%s Type %s to do so: ", question, word)
	typed := make(chan string, 1)
	go func() { // ends with the line, or with the process
		line, _ := bufio.NewReader(t.In).ReadString('\n') // no line is no
		typed <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(t.Err)
		return explain.PlainError{Text: "nothing was changed: it was interrupted", Cause: context.Cause(ctx)}
	case line := <-typed:
		if line != word {
			return fmt.Errorf("nothing was changed: the answer was not %s", word)
		}
		return nil
	}
}

// Bar shows how far long work has come, to people only; a nil one shows nothing.
type Bar struct{ *progressbar.ProgressBar }

// NewBar is for n pieces of work. Little work needs none.
func NewBar(t Terminal, what string, n int) Bar {
	if n < 50 || !IsTerminal(t.Err) {
		return Bar{}
	}
	return Bar{progressbar.NewOptions(n,
		progressbar.OptionSetWriter(t.Err), progressbar.OptionSetDescription(what), progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30))}
}

// Advance is safe for concurrent use.
func (b Bar) Advance(n int) {
	if b.ProgressBar != nil {
		_ = b.Add(n) // it can only fail to draw
	}
}

func (b Bar) Done() {
	if b.ProgressBar != nil {
		_ = b.Finish()
	}
}
