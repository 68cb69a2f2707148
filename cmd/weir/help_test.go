package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

// All help fits into 80 columns, except for command lines to copy.
func TestHelpFitsTheScreen(t *testing.T) {
	wide, narrow := newRoot(cli.Terminal{}), newRoot(cli.Terminal{})
	cli.WrapHelp(wide, 10_000)
	var texts []string
	cli.EachCommand(wide, func(cmd *cobra.Command) { texts = append(texts, cmd.Long) })
	cli.EachCommand(narrow, func(cmd *cobra.Command) {
		if got, want := strings.Fields(cmd.Long), strings.Fields(texts[0]); !slices.Equal(got, want) {
			t.Errorf("%s lost words: %q, want %q", cmd.CommandPath(), got, want)
		}
		texts = texts[1:]
		for line := range strings.Lines(cmd.Long + "\n\n" + strings.ReplaceAll(cmd.UsageString(), cmd.Example, "")) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > cli.HelpColumns {
				t.Errorf("%s has a line of %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
	})
}

// The longest help can be read in a few minutes.
func TestTheLongestHelpIsShort(t *testing.T) {
	help := clitest.MustRun(t, "", "consume", "--help-all")
	if n := strings.Count(help, "\n"); n > 370 {
		t.Errorf("weir consume --help-all has %d lines", n)
	}
}

// The short help of consume fits on a screen, and names only flags that exist, with their values.
func TestTheShortHelpOfConsume(t *testing.T) {
	help := clitest.MustRun(t, "", "consume", "--help")
	if n := strings.Count(help, "\n"); n > 48 || !strings.Contains(help, "weir consume --help-all") {
		t.Errorf("it has %d lines: %s", n, help)
	}
	for line := range strings.Lines(help) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > cli.HelpColumns {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	consume, _, err := newRoot(cli.Terminal{}).Find([]string{"consume"})
	if err != nil {
		t.Fatal(err)
	}
	listed := regexp.MustCompile(`(?m)^  --([a-z-]+) (\S*)`).FindAllStringSubmatch(help, -1)
	for _, m := range listed {
		f := consume.Flag(m[1])
		if f == nil {
			t.Errorf("there is no --%s", m[1])
		} else if f.Value.Type() == "bool" != (m[2] == "") {
			t.Errorf("--%s has the value %q, and its type is %s", m[1], m[2], f.Value.Type())
		}
	}
	if len(listed) < 20 {
		t.Errorf("it lists %q", listed)
	}
	if whole := clitest.MustRun(t, "", "consume", "--help-all", "--help"); !strings.Contains(whole, "--read-share") {
		t.Errorf("--help-all --help says %s", whole)
	}
}

// The usage line and the list of flags use the same name for the value of a flag.
func TestUsageAndFlagsAgree(t *testing.T) {
	cli.EachCommand(newRoot(cli.Terminal{}), func(cmd *cobra.Command) {
		for _, m := range regexp.MustCompile(`--([a-z-]+) ([A-Z]+)`).FindAllStringSubmatch(cmd.Use, -1) {
			if value, _ := pflag.UnquoteUsage(cmd.Flag(m[1])); value != m[2] {
				t.Errorf("%s: --%s takes %s, and its text says %s", cmd.CommandPath(), m[1], m[2], value)
			}
		}
	})
}

func TestCompletionsHaveNoMarks(t *testing.T) {
	cli.EachCommand(newRoot(cli.Terminal{}), func(cmd *cobra.Command) {
		words := append(strings.Fields(cmd.CommandPath())[1:], "--")
		if out := clitest.MustRun(t, "", append([]string{cobra.ShellCompRequestCmd}, words...)...); strings.Contains(out, "`") {
			t.Errorf("%s completes to %s", cmd.CommandPath(), out)
		}
	})
}

func TestHelpOfACommand(t *testing.T) {
	for _, words := range [][]string{nil, {"put"}, {"group", "reset"}, {"help"}} {
		if got, want := clitest.MustRun(t, "", append([]string{"help"}, words...)...), clitest.MustRun(t, "", append(slices.Clone(words), "--help")...); got != want {
			t.Errorf("help %q says %s, --help %s", words, got, want)
		}
	}
	for line, want := range map[string]string{
		"nosuch":        `there is no command "weir nosuch": there is bench, completion, consume, dashboard, dead,`,
		"deadletter":    `there is no command "weir deadletter": did you mean weir dead?`,
		"grup":          `there is no command "weir grup": did you mean weir group?`,
		"group plann":   `there is no command "weir group plann": did you mean weir group plan?`,
		"group x":       `there is no command "weir group x": there is delete, describe,`,
		"put something": `weir put has no commands, so there is no "something"`,
	} {
		if out, said := clitest.MustExit(t, cli.ExitUsage, append([]string{"help"}, strings.Fields(line)...)...); out != "" || !strings.Contains(said, want) {
			t.Errorf("help %s: %s%s", line, out, said)
		}
		if line == "put something" {
			continue // put takes a file, and its help is the same for each
		}
		if out, said := clitest.MustExit(t, cli.ExitUsage, append(strings.Fields(line), "-h")...); out != "" || !strings.Contains(said, want) {
			t.Errorf("%s -h: %s%s", line, out, said)
		}
	}
}
