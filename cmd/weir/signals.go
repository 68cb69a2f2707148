package main

import (
	"os"
	"syscall"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
)

// sameRequest is the time after the first signal during which further signals count as the same
// request to stop. A process often receives one request several times. timeout(1) signals its child
// and then the child's process group. On Ctrl-C, a terminal signals all processes of a group, and a
// parent in the group may also forward the signal to its child. npm and process managers do this.
const sameRequest = time.Second

// heedSignals calls stop at the first signal, and ignores signals during the next second. At the
// first signal after that, it calls atOnce and returns.
func heedSignals(signals <-chan os.Signal, stop func(), atOnce func(os.Signal)) {
	<-signals
	first := time.Now()
	stop()
	for s := range signals {
		if time.Since(first) >= sameRequest {
			atOnce(s)
			return
		}
	}
}

// briefly runs f, but waits for it for at most 100 ms. A signal must have its effect even if
// standard error is a full pipe that nobody reads.
func briefly(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(100 * time.Millisecond):
	}
}

// exitCode returns the exit code that shells report for a process ended by this signal.
func exitCode(s os.Signal) int {
	if s == syscall.SIGTERM {
		return cli.ExitTerminated
	}
	return cli.ExitInterrupted
}
