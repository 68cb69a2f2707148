package cli

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/health"
)

// Visible makes text safe to print. Use it for names from a store, a service or a command line. It
// escapes unprintable characters, such as line breaks and terminal controls, like a string literal
// in Go.
func Visible(s string) string { return escape(s, "") }

// VisibleLines is like Visible, but keeps line breaks and tabs.
func VisibleLines(s string) string { return escape(strings.ReplaceAll(s, "\r\n", "\n"), "\n\t") }

// Lines wraps a text to lines of at most the given number of columns. A longer word is a separate
// line.
func Lines(text string, columns int) []string { return strings.Split(wrap(text, columns), "\n") }

// escape escapes unprintable characters, except those in but.
func escape(s, but string) string {
	readable := func(r rune) bool { return strconv.IsPrint(r) || strings.ContainsRune(but, r) }
	if utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !readable(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if size > 1 && readable(r) || size == 1 && r != utf8.RuneError && readable(r) {
			b.WriteString(s[:size])
		} else {
			quoted := strconv.Quote(s[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// Textf writes formatted text for users. It applies Visible to every argument that is text. Only
// format itself can then contain line breaks and tabs.
func Textf(w io.Writer, format string, args ...any) error {
	shown := make([]any, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case string:
			shown[i] = Visible(a)
		case fmt.Stringer:
			shown[i] = Visible(a.String())
		default:
			shown[i] = a
			if of := reflect.ValueOf(a); of.Kind() == reflect.String { // for example the Reason of a dead letter
				shown[i] = Visible(of.String())
			}
		}
	}
	_, err := fmt.Fprintf(w, format, shown...)
	return err
}

// Plural returns one if n is 1, and many otherwise.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Count formats a number with a noun: "1 lease", "2 leases".
func Count[N int | int32 | int64](n N, one string) string {
	return figures.Count(n) + " " + Plural(int(n), one, one+"s")
}

// List joins names to a list for a sentence.
func List(names []string) string {
	const most = 10
	if len(names) == 0 {
		return "none"
	}
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %s more", figures.Count(len(names)-most))
	}
	return strings.Join(names, ", ")
}

// WriteVerdict writes a verdict for users to a buffer, wrapped to a number of columns. It applies
// Visible to each line, because the names in a verdict come from a store.
func WriteVerdict(b io.StringWriter, v health.Verdict, columns int) {
	for line := range strings.Lines(v.Text(columns)) {
		_, _ = b.WriteString(Visible(strings.TrimSuffix(line, "\n")) + "\n") // b is in memory
	}
}
