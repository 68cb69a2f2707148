package cli

import "testing"

func TestVisible(t *testing.T) {
	for given, want := range map[string]string{
		"":                           "",
		"shard 7 → ann, größer":      "shard 7 → ann, größer",
		"a\nb\tc":                    `a\nb\tc`,
		"\x1b[2Jgone\a":              `\x1b[2Jgone\a`,
		"\u009b31m":                  `\u009b31m`,
		"\u202etxt":                  `\u202etxt`,
		"bad \xff byte \x80, \ufffd": `bad \xff byte \x80, ` + "\ufffd",
		`a "name" with \ in it`:      `a "name" with \ in it`,
	} {
		if got := Visible(given); got != want {
			t.Errorf("%q is shown as %s, want %s", given, got, want)
		}
		if again := Visible(Visible(given)); again != Visible(given) {
			t.Errorf("%q is shown otherwise the second time: %s", given, again)
		}
	}
}
