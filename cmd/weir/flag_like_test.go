package main

import (
	"strings"
	"testing"
)

func TestAMisspeltFlagIsRecognised(t *testing.T) {
	for args, want := range map[string]string{
		"consume --steam=s":         "weir: unknown flag: --steam: is it --stream?\n",
		"consume --straem s":        "weir: unknown flag: --straem: is it --stream?\n",
		"consume -stream s":         ": is it --stream?\n",
		"consume --ap=a":            "weir: unknown flag: --ap: is it --app?\n",
		"consume --exec-result":     "weir: unknown flag: --exec-result: is it --exec-results?\n",
		"group describe --sotre=x":  "weir: unknown flag: --sotre: is it --store?\n",
		"consume --bogus":           "weir: unknown flag: --bogus\n",
		"tail --exec cat":           "weir: unknown flag: --exec\n",
		"consume -z":                "weir: unknown shorthand flag: 'z' in -z\n",
		"consume --retry-mix=5s":    "weir: unknown flag: --retry-mix: is it --retry-max or --retry-min?\n",
		"consume --attempts-x-5 -v": "weir: unknown flag: --attempts-x-5\n",
	} {
		_, said := refused(t, exitUsage, strings.Fields(args)...)
		if !strings.Contains(said, want) {
			t.Errorf("%s: %q, want %q", args, said, want)
		}
	}
}

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
