package cli

import "testing"

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "ab", 2}, {"ab", "", 2}, {"stream", "stream", 0}, {"steam", "stream", 1}, {"straem", "stream", 1},
		{"strem", "store", 2}, {"abc", "cab", 2}, {"ab", "ba", 1}, {"kitten", "sitting", 3},
	} {
		if got := edits(c.a, c.b); got != c.want || edits(c.b, c.a) != c.want {
			t.Errorf("%q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
