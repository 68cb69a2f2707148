package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

// Every flag of every command refuses a blank value. A flag with several values refuses them if one
// of them is blank.
func TestNoFlagTakesABlankValue(t *testing.T) {
	t.Parallel()
	seen := 0
	everyCommand(newRoot(cli.Terminal{}), func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			name := strings.Join(append(strings.Fields(cmd.CommandPath())[1:], "--"+f.Name), " ")
			for _, value := range []string{"", "  ", "\t\n"} {
				seen++
				t.Run(name, func(t *testing.T) { refusesBlank(t, cmd, []string{"--" + f.Name + "=" + value}, "--"+f.Name) })
			}
			if _, several := f.Value.(pflag.SliceValue); several {
				t.Run(name+" among others", func(t *testing.T) {
					refusesBlank(t, cmd, []string{"--" + f.Name + "=x:1", "--" + f.Name + "="}, "--"+f.Name)
				})
			}
		})
	})
	if seen < 200 {
		t.Errorf("only %d cases: the commands were not walked", seen)
	}
}

// An argument is a file or a name, so it must not be blank either.
func TestNoCommandTakesABlankArgument(t *testing.T) {
	t.Parallel()
	everyCommand(newRoot(cli.Terminal{}), func(cmd *cobra.Command) {
		if cmd.Args == nil || cmd.Args(cmd, []string{"x"}) != nil {
			return
		}
		t.Run(cmd.CommandPath(), func(t *testing.T) { refusesBlank(t, cmd, []string{" "}, "argument 1") })
	})
}

// A blank command must not run as a command that does nothing and succeeds: all records would count
// as handled.
func TestABlankCommandAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	server, endpoint := clitest.Kinesis(t)
	server.CreateStream("s", 1)
	clitest.MustRun(t, "a\nb\n", "put", "--stream=s", endpoint, "-")
	store := "--store=sqlite:" + t.TempDir() + "/leases.db"
	clitest.MustRun(t, "", "store", "create", store)
	for _, command := range []string{"", "  "} {
		got := clitest.Start(t, "", "consume", "--stream=s", "--app=a", store, endpoint, "--exec", command)
		if code := got.Wait(t); code != cli.ExitUsage || !strings.Contains(got.Err.String(), "--exec is blank: give a value, or leave the flag out") {
			t.Errorf("--exec %q: exit code %d and %q", command, code, got.Err)
		}
	}
	if apps := clitest.MustRun(t, "", "group", "list", store); strings.Contains(apps, "a ") {
		t.Errorf("there is progress: %s", apps)
	}
}

// refusesBlank runs a command with one blank value. It requires a usage error that contains the
// given name.
func refusesBlank(t *testing.T, cmd *cobra.Command, args []string, names string) {
	t.Helper()
	if isFlag := strings.HasPrefix(args[0], "--"); isFlag && cmd.Args != nil && cmd.Args(cmd, nil) != nil {
		args = append(args, "x") // otherwise the error is about a missing argument
	}
	got := clitest.Start(t, "", slices.Concat(strings.Fields(cmd.CommandPath())[1:], args)...)
	if code := got.Wait(t); code != cli.ExitUsage || !strings.Contains(got.Err.String(), names) {
		t.Errorf("%q: exit code %d and %q", args, code, got.Err)
	}
}

// everyCommand calls visit for each command except help and completion, including hidden commands.
func everyCommand(cmd *cobra.Command, visit func(*cobra.Command)) {
	for _, sub := range cmd.Commands() {
		everyCommand(sub, visit)
	}
	if cmd.Name() != "help" && cmd.Name() != "completion" {
		visit(cmd)
	}
}
