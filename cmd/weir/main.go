// Command weir works with Kinesis streams and with the applications that read them. See weir
// --help.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/demo"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/multilang"
	"github.com/weir-go/weir/cmd/weir/internal/shellexec"
)

func main() {
	// Catch SIGPIPE. A write to a closed standard output then fails with EPIPE, so a worker can
	// stop gracefully. Do not ignore the signal: the commands that weir starts would then ignore it
	// too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	// net/http writes invalid answers of a server to the standard logger. It also returns an error,
	// which the command reports.
	log.SetOutput(io.Discard)

	ctx, cancel := context.WithCancelCause(context.Background())
	requests := make(chan os.Signal, 4)
	signal.Notify(requests, os.Interrupt, syscall.SIGTERM)
	t := cli.NewTerminal(os.Stdin, os.Stdout, os.Stderr)
	t.Interrupt = func() {
		select {
		case requests <- os.Interrupt:
		default: // enough signals are waiting already
		}
	}
	quiet := len(os.Args) > 1 && os.Args[1] == demo.WorkerName // the demo reports for its workers
	restore := rememberTerminal()
	go heedSignals(requests, func() {
		if !quiet {
			briefly(func() { t.Note("stopping gracefully; a second signal, at least one second later, stops at once") })
		}
		cancel(explain.ErrInterrupted)
	}, func(s os.Signal) {
		shellexec.KillAll()
		restore()
		if !quiet {
			briefly(func() { t.Say(slog.LevelWarn, "stopped at once by a second signal; work may be unfinished") })
		}
		os.Exit(exitCode(s))
	})
	args := os.Args[1:]
	if daemon, ok := multilang.FromJava(args, multilang.Exists); ok {
		args = daemon
	}
	os.Exit(cli.Run(ctx, args, t, newRoot))
}

// rememberTerminal returns a function that restores the terminal. Call the function if the program
// ends while it shows a full-screen picture.
func rememberTerminal() func() {
	in := int(os.Stdin.Fd())
	if !cli.IsTerminal(os.Stdin) || !cli.IsTerminal(os.Stdout) {
		return func() {}
	}
	before, err := term.GetState(in)
	if err != nil {
		return func() {}
	}
	return func() {
		now, err := term.GetState(in)
		if err != nil || *now == *before {
			return // no picture was shown
		}
		_ = term.Restore(in, before)
		// Leave the alternate screen, show the cursor, and reset pasting and keys.
		fmt.Fprint(os.Stdout, "\x1b[?1049l\x1b[?25h\x1b[?2004l\x1b[<u\x1b[>4;0m\x1b[0m")
	}
}
