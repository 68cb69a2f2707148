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

// CanConfirm returns an error if the command has to ask a question, but standard input is not a
// terminal. If sure is true, no question is needed.
func CanConfirm(cmd *cobra.Command, t Terminal, sure bool) error {
	if !sure && !t.canAsk() {
		return Usagef("%s cannot ask for confirmation without a terminal: add --yes if you are sure", cmd.CommandPath())
	}
	return nil
}

// Confirm asks the user to type a word. It returns an error if the user types anything else. Ctrl-C
// ends the wait.
func Confirm(ctx context.Context, t Terminal, question, word string) error {
	_ = Textf(t.Err, "%s Type %s to do so: ", question, word)
	typed := make(chan string, 1)
	go func() { // ends after the line is read, or with the process
		line, _ := bufio.NewReader(t.In).ReadString('\n') // an error counts as an empty line
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

// Bar shows the progress of a task on a terminal. A Bar without a ProgressBar shows nothing.
type Bar struct{ *progressbar.ProgressBar }

// NewBar returns a bar for a task of n steps. For a small n the bar shows nothing.
func NewBar(t Terminal, what string, n int) Bar {
	if n < 50 || !IsTerminal(t.Err) {
		return Bar{}
	}
	return Bar{progressbar.NewOptions(n,
		progressbar.OptionSetWriter(t.Err), progressbar.OptionSetDescription(what), progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30))}
}

// Advance adds n completed steps. It is safe for concurrent use.
func (b Bar) Advance(n int) {
	if b.ProgressBar != nil {
		_ = b.Add(n) // it fails only if it cannot draw
	}
}

func (b Bar) Done() {
	if b.ProgressBar != nil {
		_ = b.Finish()
	}
}
