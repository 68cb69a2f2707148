// Command runtests runs go test for several modules at once and reports the failures at the end:
//
//	go run ./scripts/runtests [-note TEXT] [-slowest N] [go test flags] PACKAGE...
//
// It runs every package even if one of them does not build. It prints one line for each package
// with tests, and the output of failed tests only. It shortens goroutine dumps. The summary at the
// end counts the tests and names at most seven failures. After a failure, it also names a file with
// the complete output. With -slowest, the N slowest tests are listed before the summary. The exit
// code is 1 if anything failed or if no test ran.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout)) }

func run(args []string, out io.Writer) int {
	note, args := take(args, "-note")
	if note != "" {
		fmt.Fprintln(out, note)
	}
	slowest, args := take(args, "-slowest")
	listed, err := strconv.Atoi(slowest)
	if slowest != "" && err != nil {
		fmt.Fprintf(out, "runtests: -slowest %s is not a number of tests\n", slowest)
		return 1
	}
	began := time.Now()
	full, err := os.CreateTemp("", "weir-tests-*.log")
	if err != nil {
		fmt.Fprintln(out, "runtests:", err)
		return 1
	}
	defer full.Close()

	// The go command itself receives the signals of the terminal. This process waits for it and
	// prints the summary.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	goCommand := os.Getenv("GO")
	if goCommand == "" {
		goCommand = "go"
	}
	// Tests that wait for processes and servers leave processors idle, so run more packages at once
	// than there are processors. A -p among the arguments has precedence, because it comes later.
	args = append([]string{"test", "-json", "-p", strconv.Itoa(runtime.NumCPU() + 2)}, args...)
	cmd := exec.CommandContext(context.Background(), goCommand, args...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(out, "runtests:", err)
		return 1
	}
	r := newReport(out, full)
	lines := bufio.NewReaderSize(pipe, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			r.line(strings.TrimSuffix(line, "\n"))
		}
		if err != nil {
			break
		}
	}
	waitErr := cmd.Wait()
	r.listSlowest(listed)
	ok := r.close(time.Since(began), filepath.Clean(full.Name()), load())
	if waitErr != nil && ok {
		fmt.Fprintln(out, "runtests: go test:", waitErr)
		ok = false
	}
	if !ok {
		return 1
	}
	_ = os.Remove(full.Name())
	return 0
}

// take removes a flag and its value from the arguments.
func take(args []string, name string) (value string, rest []string) {
	for i := 0; i+1 < len(args); i++ {
		if args[i] == name {
			return args[i+1], append(args[:i:i], args[i+2:]...)
		}
	}
	return "", args
}

// load returns the load average of the machine in the last minute. It returns "" if that is
// unknown.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}
