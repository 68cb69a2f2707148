package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAgainShowsEachResult(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		look func(n int, t Terminal) (string, error)
		want string
		err  string
	}{
		"texts":         {func(n int, _ Terminal) (string, error) { return fmt.Sprintf("look %d\n", n), nil }, "look 0\nlook 1\nlook 2\n", ""},
		"with a note":   {func(n int, t Terminal) (string, error) { t.Note("no lag"); return "a\n", nil }, "a\n\nweir: no lag\n\na\n\nweir: no lag\n\na\n\nweir: no lag\n", ""},
		"a later error": {func(n int, _ Terminal) (string, error) { return "a\n", map[int]error{1: errors.New("no answer")}[n] }, "a\nNo result: no answer\na\n", ""},
		"a first error": {func(int, Terminal) (string, error) { return "a\n", errors.New("no answer") }, "", "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 5500*time.Millisecond) // three looks
				defer cancel()
				var out bytes.Buffer
				n := 0
				err := Again(ctx, Terminal{Out: &out}, func(_ context.Context, at Terminal) (string, error) {
					n++
					time.Sleep(time.Second) // a part of the time between two looks
					return c.look(n-1, at)
				})
				if out.String() != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
					t.Errorf("%q, %v", out.String(), err)
				}
			})
		})
	}
}

func TestAPictureFitsTheScreen(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 3, 4, 5, 0, time.UTC)
	text := strings.Repeat("0123456789ä", 5) + "\nb\nc\nd\ne\n"
	got := picture(text, now, false, 44, 6)
	lines := strings.Split(got, "\x1b[K\n")
	want := []string{"\x1b[H03:04:05, again every 2 s; Ctrl-C ends it", "", strings.Repeat("0123456789ä", 3) + "0123456789…", "b", "… 3 lines more; use a higher window, or no …", "\x1b[J"}
	if fmt.Sprintf("%q", lines) != fmt.Sprintf("%q", want) {
		t.Errorf("%q", lines)
	}
	if first := picture("a", now, true, 40, 6); !strings.HasPrefix(first, "\x1b[2J\x1b[H") || strings.Contains(first, "more") {
		t.Errorf("%q", first)
	}
}
