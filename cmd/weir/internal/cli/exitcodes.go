package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes of all commands.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
	ExitWrong  = 3 // the command found a problem

	ExitWarned   = 4 // doctor: only warnings
	ExitIntended = 5 // doctor: only states that an operator caused on purpose

	ExitIncomplete = 6 // consume --until-tip and --until: records are left

	ExitInterrupted = 130
	ExitTerminated  = 143
)

// ExitText explains an exit code.
type ExitText struct {
	Code int
	Text string
}

// ExitCodes contains all exit codes of the command.
var ExitCodes = []ExitText{
	{ExitDone, "success; also a worker that one signal stopped and that saved its progress"},
	{ExitFailed, "the command failed, and one sentence on standard error says why; also a worker that may " +
		"not have saved its progress, and a doctor without a result because the store does not answer"},
	{ExitUsage, "the command line is wrong, for example because the value of a flag is blank"},
	{ExitWrong, "doctor: an error, so records are not handled or may be lost; group lag --max: a shard is too far behind"},
	{ExitWarned, "doctor: warnings, and no error"},
	{ExitIntended, "doctor: only pauses and drains, which may have been forgotten"},
	{ExitIncomplete, "consume --until-tip and --until: the worker ended, and records are left"},
	{ExitInterrupted, "a second signal ended the command at once: SIGINT, as from Ctrl-C"},
	{ExitTerminated, "a second signal ended the command at once: SIGTERM"},
}

// exitCodesTopic returns the help topic about exit codes.
func exitCodesTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("These are the exit codes of all commands:\n\n")
	for _, c := range ExitCodes {
		text := strings.ReplaceAll(wrap(c.Text, HelpColumns-7), "\n", "\n       ")
		fmt.Fprintf(&b, "  %3d  %s\n", c.Code, text)
	}
	b.WriteString(`
The exit codes of programs that handle records are separate. A program of --exec
that exits with 0 has handled its batch. After any other exit code, weir handles
the batch again. A shell exits with 127 if it does not find a program, and with
126 if the program is not executable.`)
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "The meaning of each exit code",
		Long:  b.String(),
	}
}
