package shellexec

import (
	"bytes"
	"testing"
)

func TestControlCharactersAreEscaped(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain\ttext\n":      "plain\ttext\n",
		"größer · 日本\n":      "größer · 日本\n",
		"\x1b[31mred\x1b[0m": `\x1b[31mred\x1b[0m`,
		"\x1b]0;title\x07":   `\x1b]0;title\x07`,
		"10%\r20%\r\ndone\n": "10%\n20%\ndone\n",
		"\u009b31m \u00a0":   `\u009b31m ` + "\u00a0",
		"\x7f\x00":           `\x7f\x00`,
	} {
		var whole, parts bytes.Buffer
		_, _ = (&visibleWriter{to: &whole}).Write([]byte(text))
		w := &visibleWriter{to: &parts}
		for i := range len(text) { // a character may arrive in two parts
			if n, err := w.Write([]byte{text[i]}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if whole.String() != want || parts.String() != want {
			t.Errorf("%q is shown as %q, and in parts as %q; want %q", text, &whole, &parts, want)
		}
	}
}
