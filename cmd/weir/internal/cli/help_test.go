package cli

import "testing"

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
