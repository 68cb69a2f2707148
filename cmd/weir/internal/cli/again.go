package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/weir-go/weir/cmd/weir/internal/explain"
)

// AgainEvery is the time between two looks with --watch.
const AgainEvery = 2 * time.Second

// RegisterWatch adds the flag --watch.
func RegisterWatch(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVarP(to, "watch", "w", false, "show the result again every 2 s, in place on a terminal, until Ctrl-C")
}

// Again calls look and writes its text to t.Out, again and again until ctx ends. It then returns
// nil. On a terminal, each text replaces the previous one. look writes its notes to the terminal
// that it is given, and they appear below the text.
//
// If the first look fails, Again returns its error. A later error is shown instead of a text.
func Again(ctx context.Context, t Terminal, look func(context.Context, Terminal) (string, error)) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		began := time.Now()
		var notes bytes.Buffer
		inner := Terminal{Out: io.Discard, Err: &notes, speech: &speech{}}
		inner.width = t.Columns()
		text, err := look(ctx, inner)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && n == 0:
			return err
		case err != nil:
			text = "No result: " + explain.Error(err) + "\n"
		}
		for note := range strings.Lines(notes.String()) {
			text += "\n" + wrap(note, t.columns()) + "\n"
		}
		if err := t.redraw(text, n); err != nil {
			return err
		}
		timer.Reset(max(AgainEvery-time.Since(began), 0))
	}
}

// redraw writes the text of look number n.
func (t Terminal) redraw(text string, n int) error {
	width, height, ok := t.size()
	if !ok {
		if n > 0 && strings.Count(text, "\n") > 1 { // a single line is an object of -o json
			text = "\n" + text
		}
		_, err := io.WriteString(t.Out, text)
		return err
	}
	_, err := io.WriteString(t.Out, picture(text, time.Now(), n == 0, width, height))
	return err
}

// size returns the size of the screen. ok is false if the output is no terminal.
func (t Terminal) size() (width, height int, ok bool) {
	f, isFile := t.Out.(*os.File)
	if !isFile {
		return 0, 0, false
	}
	width, height, err := term.GetSize(int(f.Fd()))
	return width, height, err == nil && width > 0 && height > 0
}

// picture returns the characters that replace the previous picture by a text. It cuts lines that
// are too long, and says how many lines do not fit.
func picture(text string, now time.Time, first bool, width, height int) string {
	const home, clearLine, clearRest, clearAll = "\x1b[H", "\x1b[K", "\x1b[J", "\x1b[2J"
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	head := fmt.Sprintf("%s, again every %d s; Ctrl-C ends it", now.Format("15:04:05"), AgainEvery/time.Second)
	lines = append([]string{head, ""}, lines...)
	if room := max(height-1, 3); len(lines) > room { // the last line of the screen has the cursor
		more := len(lines) - room + 1
		lines = append(lines[:room-1], fmt.Sprintf("… %s more; use a higher window, or no --watch", Count(more, "line")))
	}
	var b strings.Builder
	if first {
		b.WriteString(clearAll)
	}
	b.WriteString(home)
	for _, line := range lines {
		if r := []rune(line); len(r) > width {
			line = string(r[:width-1]) + "…"
		}
		b.WriteString(line + clearLine + "\n")
	}
	b.WriteString(clearRest)
	return b.String()
}
