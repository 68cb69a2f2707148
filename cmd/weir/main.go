// Command weir works with Kinesis streams and with the applications that read them; see weir --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// errInterrupted is the cause of a command's context after the first Ctrl-C.
var errInterrupted = errors.New("interrupted")

func main() {
	// Caught rather than ignored: a write to a closed standard output then fails with EPIPE, which lets a worker stop in an
	// orderly way, and the commands that we start still begin with the default.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	ctx, cancel := context.WithCancelCause(context.Background())
	requests := make(chan os.Signal, 4)
	signal.Notify(requests, os.Interrupt, syscall.SIGTERM)
	t := terminal{in: os.Stdin, out: os.Stdout, err: os.Stderr}
	t.interrupt = func() {
		select {
		case requests <- os.Interrupt:
		default: // enough are waiting already
		}
	}
	quiet := len(os.Args) > 1 && os.Args[1] == workerCommand // the demo speaks for its workers
	go func() {
		<-requests
		if !quiet {
			fmt.Fprintln(os.Stderr, "weir: stopping in order; once more to stop at once")
		}
		cancel(errInterrupted)
		<-requests
		os.Exit(130)
	}()
	os.Exit(run(ctx, os.Args[1:], t))
}
