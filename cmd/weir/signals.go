package main

import (
	"os"
	"syscall"
	"time"
)

// sameRequest is how long after the first signal others count as the same request to stop. A
// process often gets one request several times: timeout(1) signals its child and then the child's
// process group, a terminal signals a group whose leader forwards the signal, and so do npm and
// process managers.
const sameRequest = time.Second

// heedSignals calls stop at the first signal, ignores those of the next second, and calls atOnce
// with the first one after that. It then returns.
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

// briefly runs f, and waits for it for 100 ms at most. A signal has its effect even if standard
// error is a full pipe without a reader.
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

// exitCode returns the code that shells report for a process that a signal ended.
func exitCode(s os.Signal) int {
	if s == syscall.SIGTERM {
		return 143
	}
	return 130
}
