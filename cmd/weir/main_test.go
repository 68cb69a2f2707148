package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/leaktest"
	"github.com/weir-go/weir/kinesistest"
)

// asCommand is set for a test program that is to be the command: in a process of its own, with all
// that its libraries print.
const asCommand = "WEIR_TEST_AS_COMMAND"

// otherRole makes of the test program what else its environment says, where there are tests that
// need that.
var otherRole func()

// TestMain lets the demo start this test program as its workers, and keeps the settings of whoever
// runs the tests out of them.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		main()
	}
	if otherRole != nil {
		otherRole()
	}
	if os.Getenv(asCommand) != "" {
		main()
	}
	env := map[string]string{"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true"}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") && env[name] == "" {
			env[name] = "" // the SDK takes empty for unset
		}
	}
	for name, value := range env {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	overlap()
	os.Exit(leaktest.Run(m))
}

// leastParallel is the least number of tests that run in parallel. They mostly wait for processes
// and for servers that never answer, so they use little processor time.
const leastParallel = 8

// overlap raises the number of parallel tests to leastParallel, unless -test.parallel is given.
func overlap() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given || runtime.GOMAXPROCS(0) >= leastParallel {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(leastParallel)); err != nil {
		panic(err)
	}
}

// output is a standard output that tests watch while a command writes to it.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed and replaced at every write
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) lines() []string {
	text := strings.TrimSuffix(o.String(), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// await waits until what was written satisfies a condition.
func (o *output) await(t *testing.T, what string, enough func(string) bool) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		o.mu.Lock()
		text, changed := o.text.String(), o.changed
		o.mu.Unlock()
		if enough(text) {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("%s: not within a minute; there is %.2000q", what, text)
		}
	}
}

// command is a weir command that runs inside the test.
type command struct {
	out, err *output
	cancel   context.CancelCauseFunc
	done     chan struct{}
	code     int
}

// start runs a command line, with a text on its standard input, until it ends or the test does.
func start(t *testing.T, stdin string, args ...string) *command {
	t.Helper()
	return startTo(t, newOutput(), strings.NewReader(stdin), args...)
}

// startTo is start with an output that others may write to, too, and an input that may last.
func startTo(t *testing.T, out *output, in io.Reader, args ...string) *command {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &command{out: out, err: newOutput(), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.code = run(ctx, args, terminal{in: in, out: c.out, err: c.err, interrupt: func() { cancel(errInterrupted) }})
	}()
	t.Cleanup(func() { cancel(errInterrupted); <-c.done })
	return c
}

// wait waits for the end of the command and returns its exit code.
func (c *command) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-c.done:
		return c.code
	case <-time.After(2 * time.Minute):
		t.Fatalf("the command does not end; it said %q", c.err)
		return -1
	}
}

// interrupt does what Ctrl-C does and waits for the end.
func (c *command) interrupt(t *testing.T) int {
	t.Helper()
	c.cancel(errInterrupted)
	return c.wait(t)
}

// mustRun runs a command line that has to succeed and returns its standard output.
func mustRun(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	c := start(t, stdin, args...)
	if code := c.wait(t); code != exitDone {
		t.Fatalf("weir %s: exit code %d, %s", strings.Join(args, " "), code, c.err)
	}
	return c.out.String()
}

// kinesis starts a server and returns it with the flag that leads to it.
func kinesisServer(t *testing.T) (*kinesistest.Server, string) {
	t.Helper()
	s := kinesistest.NewServer(t)
	return s, "--endpoint=" + s.URL()
}

// numbered are lines of JSON with a key from a to e and a number.
func numbered(n int) (text string, lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf(`{"key":"%c","n":%d}`, 'a'+i%5, i))
	}
	return strings.Join(lines, "\n") + "\n", lines
}
