package cli

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestWrap(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"nothing":                    {"", ""},
		"a short line":               {"one two", "one two"},
		"a long line":                {"one two three four", "one two\nthree four"},
		"short lines of a paragraph": {"one\ntwo\nthree", "one two\nthree"},
		"paragraphs":                 {"one\n\ntwo", "one\n\ntwo"},
		"what is indented":           {"one\n  two  three four five\nsix seven", "one\n  two  three four five\nsix seven"},
		"a word that is too long":    {"one ohsolongaword two", "one\nohsolongaword\ntwo"},
		"runes, not bytes":           {"äöü äöü äö", "äöü äöü äö"},
	} {
		if got := wrap(c.in, 10); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A long name of one flag must not make the texts of all flags narrow.
func TestTheTextOfALongFlagBeginsOnTheNextLine(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.String("a-flag-with-a-name-that-is-longer-than-the-column", "", "its text is below")
	flags.BoolP("bisect", "b", false, "find the record that fails, and handle `each`   half alone")
	flags.String("hidden", "", "no text")
	if err := flags.MarkHidden("hidden"); err != nil {
		t.Fatal(err)
	}
	const want = `      --a-flag-with-a-name-that-is-longer-than-the-column string
                              its text is below
  -b, --bisect each           find the record that fails,
                              and handle each half alone
`
	if got := flagUsages(flags, 60); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
