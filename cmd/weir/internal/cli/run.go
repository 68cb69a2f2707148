// Package cli contains what all commands of weir share. It runs command lines, defines flags and
// their values, and formats help. It also writes results, notes and logs to the terminal.
package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/peers"
)

// UsageError is an error in the command line. Its exit code is 2 instead of 1.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// Wrong is the result of a command that looks for problems and found one. Its exit code is 3. An
// empty text means that the command has already printed everything.
type Wrong string

func (w Wrong) Error() string { return string(w) }

// ExitCode ends a command with this exit code and without a further message.
type ExitCode int

func (ExitCode) Error() string { return "" }

// Usage returns err as a UsageError.
func Usage(err error) error { return UsageError{err} }

// Usagef returns a UsageError with a formatted text.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Run runs a command line and returns its exit code. newRoot creates the root command with its
// subcommands. For an error, Run prints one sentence on t.Err.
func Run(ctx context.Context, args []string, t Terminal, newRoot func(Terminal) *cobra.Command) int {
	if t.speech == nil {
		t.speech = &speech{}
	}
	running := false
	root := newRoot(t)
	unknown := refuseHelp(root)
	ctx, end := peers.WithWaits(ctx, t.Say)
	defer end()
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if err := RefuseBlank(cmd, args); err != nil {
			return err
		}
		running = true
		return nil
	}
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		unquoteFlags(root)
	}
	root.SetArgs(args)
	root.SetIn(t.In)
	root.SetErr(t.Err)

	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = unknown()
	} else if !running {
		err = misspelt(cmd, args, err)
	}
	if err == nil {
		return ExitDone
	}
	var usage UsageError
	if !running || errors.As(err, &usage) {
		t.Note("%s\nSee: %s --help", explain.OneLine(err.Error()), cmd.CommandPath())
		return ExitUsage
	}
	var said ExitCode
	if errors.As(err, &said) {
		return int(said)
	}
	var found Wrong
	if errors.As(err, &found) {
		if found != "" {
			t.Note("%s", found)
		}
		return ExitWrong
	}
	t.Say(slog.LevelError, "%s", explain.Error(err))
	return ExitFailed
}

// Finish completes the root command after its subcommands have been added. It adds completion,
// help, exit codes and the texts for mistakes.
func Finish(root *cobra.Command, t Terminal) {
	root.SetUsageTemplate(root.UsageTemplate() + `{{if .Runnable}}
Exit codes: 0 is success, and "weir help exit-codes" explains the others.
{{end}}`)
	root.AddCommand(exitCodesTopic())
	root.SetFlagErrorFunc(mistakenFlag)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.SetOut(t.Out) // the completion scripts use this output, and take it when their commands are created
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		// Without this, an unknown shell would print the help and succeed.
		completion.Args = NoArgs
		completion.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	root.SetHelpCommand(helpCommand())
	WrapHelp(root, t.columns())
}
