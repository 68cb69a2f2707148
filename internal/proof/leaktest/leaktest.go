// Package leaktest fails the tests of a package if goroutines outlive them. It is only for tests:
//
//	func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }
package leaktest

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience is how long goroutines may take to end after the last test. Only a leak uses all of this
// time.
const patience = 10 * time.Second

// Run runs the tests and returns the exit code. The code is not 0 if the tests leak goroutines.
// Benchmarks and fuzz tests are not checked, because their shared servers end with the process.
func Run(m *testing.M) int {
	code := m.Run()
	if code != 0 || asked("test.bench") || asked("test.fuzz") || asked("test.fuzzworker") {
		return code
	}
	http.DefaultClient.CloseIdleConnections() // a client that tests share
	if left := Left(patience); left != "" {
		fmt.Fprintf(os.Stderr, "goroutines were left behind:\n\n%s\n", left)
		return 1
	}
	return 0
}

func asked(name string) bool {
	f := flag.Lookup(name)
	return f != nil && f.Value.String() != "" && f.Value.String() != "false"
}

// Left waits until no other goroutine runs, at most for the given time. It returns the stacks of
// the goroutines that remain. Goroutines of the runtime and of package signal do not count, because
// they end with the process.
func Left(within time.Duration) string {
	late := time.NewTimer(within)
	defer late.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		left := others()
		if left == "" {
			return ""
		}
		select {
		case <-late.C:
			return left
		case <-again.C:
		}
	}
}

func others() string {
	buf := make([]byte, 64<<10)
	for n := runtime.Stack(buf, true); ; n = runtime.Stack(buf, true) {
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	_, rest, _ := strings.Cut(string(buf), "\n\n") // the first stack is that of the caller
	var left []string
	for _, stack := range strings.Split(rest, "\n\n") {
		if stack != "" && !permanent(stack) {
			left = append(left, stack)
		}
	}
	return strings.Join(left, "\n\n")
}

func permanent(stack string) bool {
	for _, of := range []string{"os/signal.signal_recv", "os/signal.loop", "runtime/trace.Start", "runtime.ensureSigM", "testing.(*F).Fuzz"} {
		if strings.Contains(stack, of) {
			return true
		}
	}
	return false
}
