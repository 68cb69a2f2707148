package wronginput

import (
	"strings"
	"testing"
	"time"
)

// This test checks problems itself. If problems found nothing, all other tests would pass.
func TestProblems(t *testing.T) {
	good := result{input: Input{Code: 1, Says: []string{"no such stream"}}, code: 1, stderr: "weir: there is no such stream: check --stream\n"}
	if found := problems(good); len(found) > 0 {
		t.Errorf("a good answer: %q", found)
	}
	good.stderr = "weir: waiting for Kinesis, 5s so far\n" + good.stderr
	if found := problems(good); len(found) > 0 {
		t.Errorf("a good answer that took a while: %q", found)
	}
	for name, c := range map[string]struct {
		spoil func(*result)
		want  string
	}{
		"another exit code":        {func(r *result) { r.code = 0 }, "exit code 0, want 1"},
		"no end":                   {func(r *result) { r.hung = true }, "did not end"},
		"another reason":           {func(r *result) { r.stderr = "weir: it failed\n" }, `does not say "no such stream"`},
		"advice that leads astray": {func(r *result) { r.input.Not = []string{"check --stream"} }, `"check --stream" has no place`},
		"nothing":                  {func(r *result) { r.stderr, r.input.Says = "", nil }, "says nothing"},
		"a second sentence":        {func(r *result) { r.stderr += "weir: and more\n" }, "2 lines, want 1"},
		"the SDK's words":          {func(r *result) { r.stderr = "weir: operation error Kinesis: no such stream\n" }, `"operation error"`},
		"a password":               {func(r *result) { r.stderr = "weir: no such stream for " + Secret + "\n" }, Secret},
		"a screen that changes":    {func(r *result) { r.stderr = "weir: no such stream \x1b[2J\n" }, "control character"},
		"silence":                  {func(r *result) { r.word = wordWithin + slack + time.Second }, "first word came after"},
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			c.spoil(&r)
			if found := strings.Join(problems(r), "; "); !strings.Contains(found, c.want) {
				t.Errorf("found %q, want something with %q", found, c.want)
			}
		})
	}
}

func TestLaterSettingsReplaceEarlierOnes(t *testing.T) {
	got := environment([]string{"A=1", "B=2"}, []string{"A=", "C=x=y"})
	if want := "A= B=2 C=x=y"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}
