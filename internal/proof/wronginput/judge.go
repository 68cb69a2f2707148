package wronginput

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Secret is a password in inputs. It must never be printed.
const Secret = "hunter2"

// insides contains words that show that a text was not written for users.
var insides = []string{
	"goroutine ", "panic", "%!", "<nil>", "operation error", "https response error", "RequestID", "Options.", ": weir: ", "0xc0", "context deadline",
	"exceeded maximum number of attempts", Secret,
}

// problems returns the problems of a result, as sentences.
func problems(r result) []string {
	var found []string
	complain := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	in := r.input
	if r.hung {
		complain("it did not end within %s", in.limit())
	} else if r.code != in.Code {
		complain("exit code %d, want %d", r.code, in.Code)
	}
	for _, want := range in.Says {
		if !strings.Contains(r.stderr, want) {
			complain("it does not say %q", want)
		}
	}
	for _, word := range slices.Concat(insides, in.Not) {
		if strings.Contains(r.stderr, word) {
			complain("%q has no place in it", word)
		}
	}
	if i := strings.IndexFunc(r.stderr, func(c rune) bool { return c != '\n' && unicode.IsControl(c) }); i >= 0 {
		complain("there is a control character in it, byte %d", i)
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n"), usual)
	switch most := in.lines(); {
	case r.stderr == "" && in.Code != 0:
		complain("it says nothing")
	case len(lines) > most:
		complain("it has %d lines, want %d at most", len(lines), most)
	}
	if r.word > wordWithin+slack {
		complain("the first word came after %s", r.word)
	}
	return found
}

// usual reports whether a line also appears with valid inputs. Such a line names the transport of a
// worker, or announces a wait, which is possible with any command on a busy machine.
func usual(line string) bool {
	return strings.Contains(line, `msg="calling Kinesis"`) || strings.HasPrefix(line, "weir: waiting for ") || strings.Contains(line, " answers, after ")
}

func (in Input) lines() int {
	switch {
	case in.Lines > 0:
		return in.Lines
	case in.Code == 2:
		return 2
	}
	return 1
}
