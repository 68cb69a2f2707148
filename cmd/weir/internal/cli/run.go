// Package cli holds what all commands of weir share: the terminal, how a command line is run, flags
// and their values, help, and how results, notes and logs are written.
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

// UsageError is a wrong way to call a command: exit code 2 instead of 1.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// Wrong is the result of a command that looked for something wrong and found it: exit code 3. ""
// when it was all said.
type Wrong string

func (w Wrong) Error() string { return string(w) }

// ExitCode is an exit code after which nothing is left to say.
type ExitCode int

func (ExitCode) Error() string { return "" }

// Usage is an error about the command line.
func Usage(err error) error { return UsageError{err} }

// Usagef is Usage for a text.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Run carries out one command line and returns its exit code. newRoot makes the command with all
// that belong to it. All that is said about an error is one sentence on t.err.
func Run(ctx context.Context, args []string, t Terminal, newRoot func(Terminal) *cobra.Command) int {
	if t.speech == nil {
		t.speech = &speech{}
	}
	running := false
	root := newRoot(t)
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
		return ExitDone
	}
	var usage UsageError
	if !running {
		err = misspelt(cmd, args, err)
	}
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

// Finish completes the command weir, whose commands have been added: completion, help, the exit
// codes and the words for mistakes.
func Finish(root *cobra.Command, t Terminal) {
	root.SetUsageTemplate(root.UsageTemplate() + `{{if .Runnable}}
Exit codes:
  0 done
  1 it failed, and one sentence on standard error says why
  2 the command line is wrong
  3 doctor found an error, or lag --max a shard too far behind
  4 doctor found warnings and no error
  5 doctor found nothing but pauses and drains
{{end}}`)
	root.SetFlagErrorFunc(mistakenFlag)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.SetOut(t.Out) // the scripts go where this is when their commands are made
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		// a shell that it does not know is an error, not a reason to print the help
		completion.Args = NoArgs
		completion.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	root.SetHelpCommand(helpCommand())
	WrapHelp(root, t.columns())
}
