package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

// Every visible command has a short and a long help text. Every command without subcommands also
// has an example. The commands and flags in the examples exist.
func TestEveryCommandTeaches(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if name := cmd.Name(); cmd.Hidden || name == "help" || name == "completion" || cmd.IsAdditionalHelpTopicCommand() {
			return
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || len(cmd.Long) <= len(cmd.Short) {
			t.Errorf("%s has the short text %q and %d bytes of long text", cmd.CommandPath(), cmd.Short, len(cmd.Long))
		}
		if !cmd.HasSubCommands() && cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, line := range strings.Split(cmd.Example, "\n") {
			// Every command and flag in the examples exists.
			_, ours, found := strings.Cut(line, "weir ")
			if !found {
				continue
			}
			args := strings.Fields(strings.Split(strings.Split(ours, "    ")[0], " | ")[0])
			shown, rest, err := newRoot(cli.Terminal{}).Find(args)
			if err != nil {
				t.Errorf("%s shows %q: %v", cmd.CommandPath(), line, err)
				continue
			}
			for _, arg := range rest {
				name, isFlag := strings.CutPrefix(arg, "--")
				if isFlag && shown.Flags().Lookup(strings.Split(name, "=")[0]) == nil {
					t.Errorf("%s shows %q, but there is no flag %s", cmd.CommandPath(), line, arg)
				}
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot(cli.Terminal{}))
}

func TestHelpAndCompletion(t *testing.T) {
	help := clitest.MustRun(t, "", "consume", "--help-all")
	for _, want := range []string{"Exit codes:", "WEIR_EPOCH", "--store", "sqlite:billing.db"} {
		if !strings.Contains(help, want) {
			t.Errorf("the help lacks %q", want)
		}
	}
	if out := clitest.MustRun(t, ""); !strings.Contains(out, "weir demo") {
		t.Errorf("weir alone says %s", out)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out := clitest.MustRun(t, "", "completion", shell); !strings.Contains(out, "weir") {
			t.Errorf("%s: %.200s", shell, out)
		}
	}
	store := "sqlite:" + filepath.Join(t.TempDir(), "leases.db")
	clitest.MustRun(t, `{"weir":"progress","version":1,"app":"billing","leases":0,"paused":["s"]}`, "group", "import", "--app=billing", "--store="+store, "--yes", "-")
	for line, want := range map[string]string{
		"put -o ":                        "json",
		"put --on-too":                   "--on-too-large",
		"tail --from ":                   "oldest",
		"put --stream s --on-too-large ": "skip",
		"consume --store ":               "sqlite:",
		"gro":                            "group",
		"demo --kill ":                   "leader",
		"group re":                       "reset",
		"group reset --to ":              "latest",
		"group lag --max ":               "5m",
		"group describe --store " + store + " --app ": "billing",
	} {
		words := strings.Split(line, " ")
		if out := clitest.MustRun(t, "", append([]string{"__complete"}, words...)...); !strings.Contains(out, want) {
			t.Errorf("%q completes to %q, want %q among it", line, out, want)
		}
	}
}

func TestVersion(t *testing.T) {
	if out := clitest.MustRun(t, "", "version"); !strings.HasPrefix(out, "weir ") || !strings.Contains(out, "go1.") {
		t.Errorf("version says %q", out)
	}
	if short, long := clitest.MustRun(t, "", "--version"), clitest.MustRun(t, "", "version"); short != long {
		t.Errorf("--version says %q, version %q", short, long)
	}
	var b cli.Build
	if err := json.Unmarshal([]byte(clitest.MustRun(t, "", "version", "-o=json")), &b); err != nil || b.Version == "" || b.Platform == "" {
		t.Errorf("%+v, %v", b, err)
	}
}
