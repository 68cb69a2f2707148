package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
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

// No line of any help is broken by a screen of 80 columns, but for command lines to copy.
func TestHelpFitsTheScreen(t *testing.T) {
	wide, narrow := newRoot(terminal{}), newRoot(terminal{})
	wrapHelp(wide, 10_000)
	var texts []string
	eachCommand(wide, func(cmd *cobra.Command) { texts = append(texts, cmd.Long) })
	eachCommand(narrow, func(cmd *cobra.Command) {
		if got, want := strings.Fields(cmd.Long), strings.Fields(texts[0]); !slices.Equal(got, want) {
			t.Errorf("%s lost words: %q, want %q", cmd.CommandPath(), got, want)
		}
		texts = texts[1:]
		for line := range strings.Lines(cmd.Long + "\n\n" + strings.ReplaceAll(cmd.UsageString(), cmd.Example, "")) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > helpColumns {
				t.Errorf("%s has a line of %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
	})
}

// A flag's value is called in the list of flags what the line of usage calls it.
func TestUsageAndFlagsAgree(t *testing.T) {
	eachCommand(newRoot(terminal{}), func(cmd *cobra.Command) {
		for _, m := range regexp.MustCompile(`--([a-z-]+) ([A-Z]+)`).FindAllStringSubmatch(cmd.Use, -1) {
			if value, _ := pflag.UnquoteUsage(cmd.Flag(m[1])); value != m[2] {
				t.Errorf("%s: --%s takes %s, and its text says %s", cmd.CommandPath(), m[1], m[2], value)
			}
		}
	})
}

func TestCompletionsHaveNoMarks(t *testing.T) {
	eachCommand(newRoot(terminal{}), func(cmd *cobra.Command) {
		words := append(strings.Fields(cmd.CommandPath())[1:], "--")
		if out := mustRun(t, "", append([]string{cobra.ShellCompRequestCmd}, words...)...); strings.Contains(out, "`") {
			t.Errorf("%s completes to %s", cmd.CommandPath(), out)
		}
	})
}

func TestHelpOfACommand(t *testing.T) {
	for _, words := range [][]string{nil, {"put"}, {"group", "reset"}, {"help"}} {
		if got, want := mustRun(t, "", append([]string{"help"}, words...)...), mustRun(t, "", append(slices.Clone(words), "--help")...); got != want {
			t.Errorf("help %q says %s, --help %s", words, got, want)
		}
	}
	for line, want := range map[string]string{
		"nosuch":        `there is no command "weir nosuch": there is completion, consume, dashboard, dead, demo,`,
		"grup":          `there is no command "weir grup": did you mean weir group?`,
		"group plann":   `there is no command "weir group plann": did you mean weir group plan?`,
		"group x":       `there is no command "weir group x": there is delete, describe,`,
		"put something": `weir put has no commands, so no "something"`,
	} {
		if out, said := refused(t, exitUsage, append([]string{"help"}, strings.Fields(line)...)...); out != "" || !strings.Contains(said, want) {
			t.Errorf("help %s: %s%s", line, out, said)
		}
	}
}
