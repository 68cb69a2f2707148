package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// The exit codes of every command.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitWrong  = 3 // what was looked at is not as it should be

	exitWarned   = 4 // doctor: it may become so
	exitIntended = 5 // doctor: it is as somebody wanted it, for now
)

// terminal is what a command talks to; tests give it buffers.
type terminal struct {
	in       io.Reader
	out, err io.Writer
	// asks says that a person answers questions on in although it is no terminal; tests set it.
	asks bool
	// interrupt does what Ctrl-C does, for screens that get the key instead of the signal.
	interrupt func()
	// speech is shared by all copies of a terminal; run makes one if there is none.
	speech *speech
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// usageError is a wrong way to call a command: exit code 2 instead of 1.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// wrong is the result of a command that looked for something wrong and found it: exit code 3. ""
// when it was all said.
type wrong string

func (w wrong) Error() string { return string(w) }

// verdict is an exit code after which nothing is left to say.
type verdict int

func (verdict) Error() string { return "" }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run carries out one command line and returns its exit code. All it has to say about an error is
// one sentence on t.err.
func run(ctx context.Context, args []string, t terminal) int {
	if t.speech == nil {
		t.speech = &speech{}
	}
	running := false
	root := newRoot(t)
	ctx, end := withWaits(ctx, t)
	defer end()
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if err := refuseBlank(cmd, args); err != nil {
			return err
		}
		running = true
		return nil
	}
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		unquoteFlags(root)
	}
	root.SetArgs(args)
	root.SetIn(t.in)
	root.SetErr(t.err)

	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	var usage usageError
	if !running {
		err = misspelt(cmd, args, err)
	}
	if !running || errors.As(err, &usage) {
		t.note("%s\nSee: %s --help", oneLine(err.Error()), cmd.CommandPath())
		return exitUsage
	}
	var said verdict
	if errors.As(err, &said) {
		return int(said)
	}
	var found wrong
	if errors.As(err, &found) {
		if found != "" {
			t.note("%s", found)
		}
		return exitWrong
	}
	t.say(slog.LevelError, "%s", explain(err))
	return exitFailed
}

// oneLine is cobra's text for an error without its paragraphs ("Did you mean this?").
func oneLine(s string) string {
	s = strings.TrimPrefix(strings.TrimSpace(s), "weir: ")
	return strings.Join(strings.Fields(s), " ")
}

func newRoot(t terminal) *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "Groups of workers that share a Kinesis stream",
		Long: `weir works with Amazon Kinesis data streams and with the applications that read them: groups of workers
that share the shards of a stream, remember how far they got, follow every split and merge in order,
and go on when any of them dies.

New here? "weir demo" shows all of that on this machine within a minute. It needs no account and no network.`,
		Example: `  weir demo                                        see it work, with real data
  weir local --stream flights:4                    a Kinesis for development, on port 4567
  weir put --stream flights --key origin FILE      fill a stream from a file
  weir tail --stream flights --from oldest         look into it
  weir consume --stream flights --app billing --store sqlite:billing.db    one worker; start several`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
		Version: thisBuild().String(),
	}
	root.Flags().Bool("version", false, "say which weir this is")
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetUsageTemplate(root.UsageTemplate() + `{{if .Runnable}}
Exit codes:
  0 done
  1 it failed, and one sentence on standard error says why
  2 the command line is wrong
  3 doctor found an error, or lag --max a shard too far behind
  4 doctor found warnings and no error
  5 doctor found only pauses and drains, which somebody asked for
{{end}}`)
	root.SetFlagErrorFunc(mistakenFlag)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.AddGroup(
		&cobra.Group{ID: "try", Title: "On this machine:"},
		&cobra.Group{ID: "stream", Title: "With a stream:"},
		&cobra.Group{ID: "app", Title: "With an application's progress:"},
	)
	in := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	in("try", demoCommand(t), localCommand(t))
	in("stream", putCommand(t), tailCommand(t), consumeCommand(t), streamCommand(t), fanoutCommand(t))
	in("app", groupCommand(t), dashboardCommand(t), exporterCommand(t), doctorCommand(t), deadCommand(t), storeCommand(t))
	root.AddCommand(versionCommand(t), demoWorkerCommand(t))
	root.SetOut(t.out) // the scripts go where this is when their commands are made
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		// a shell that it does not know is an error, not a reason to print the help
		completion.Args = noArgs
		completion.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	root.SetHelpCommand(helpCommand())
	wrapHelp(root, t.columns())
	return root
}

// format is the -o flag.
type format string

const (
	formatText format = "text"
	formatJSON format = "json"
)

func (f *format) String() string { return string(*f) }
func (f *format) Type() string   { return "text|json" }

func (f *format) Set(s string) error {
	switch format(s) {
	case formatText, formatJSON:
		*f = format(s)
		return nil
	}
	return fmt.Errorf("%q is not an output format: use text or json", s)
}

func (f *format) register(cmd *cobra.Command, what string) {
	*f = formatText
	cmd.Flags().VarP(f, "output", "o", what)
	mustComplete(cmd, "output", "text\tfor people", "json\tfor programs")
}

// mustComplete offers fixed values for a flag to the shell.
func mustComplete(cmd *cobra.Command, flag string, values ...cobra.Completion) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		// the flag does not exist: a mistake in this file's neighbour, found by every test
		panic(err)
	}
}

// require complains about flags that a command cannot do without, by name.
func require(cmd *cobra.Command, flags ...string) error {
	var missing []string
	for _, name := range flags {
		if f := cmd.Flags().Lookup(name); f.Value.String() == "" || f.Value.String() == "[]" {
			switch name {
			case "store":
				name += " (or " + storeVariable + " in the environment)"
			case "dead":
				name += " (or " + letterVariable + " in the environment)"
			}
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) > 0 {
		return usagef("%s needs %s", cmd.CommandPath(), strings.Join(missing, " and "))
	}
	return nil
}
