package clitest

import (
	"strings"
	"testing"
	"unicode"
)

// Evil is a name that breaks lines and controls terminals unless it is escaped.
const Evil = "x\n\t\x1b]0;owned\a\u009b2J\r\u202e"

// CheckShown fails the test unless text contains Evil in an escaped form and has exactly the given
// number of lines. The text must not contain terminal controls.
func CheckShown(t *testing.T, what, text string, lines int) {
	t.Helper()
	whole := strings.ReplaceAll(text, "\n", "")
	if i := strings.IndexFunc(whole, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("%s shows %q", what, text)
	}
	if n := strings.Count(text, "\n"); n != lines {
		t.Errorf("%s has %d lines, want %d:\n%s", what, n, lines, text)
	}
	if !strings.Contains(whole, `\x1b]0;owned`) {
		t.Errorf("%s does not show what the name is: %s", what, text)
	}
}
