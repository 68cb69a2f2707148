// Package clitest runs command lines of weir inside tests.
package clitest

import (
	"bytes"
	"context"
	"encoding/json"
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

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/internal/proof/leaktest"
	"github.com/weir-go/weir/kinesistest"
)

// leastParallel is the minimum number of tests that run in parallel. The tests mostly wait for
// processes and for servers that never answer, so they use little CPU time.
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

// makeRoot creates the root command for each command line that a test runs. Main sets makeRoot.
var makeRoot func(cli.Terminal) *cobra.Command

// Main runs the tests of a package; call it from TestMain. It hides the user's settings from the
// tests. root creates the root command that Start and similar functions run.
func Main(m *testing.M, root func(cli.Terminal) *cobra.Command) {
	makeRoot = root
	env := map[string]string{"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true"}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") && env[name] == "" {
			env[name] = "" // the SDK treats empty variables as unset
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

// Weir returns a function for Main. The function creates a root command that has only the given
// subcommands.
func Weir(commands ...func(cli.Terminal) *cobra.Command) func(cli.Terminal) *cobra.Command {
	return func(t cli.Terminal) *cobra.Command {
		root := &cobra.Command{
			Use: "weir", Args: cli.NoArgs, SilenceErrors: true, SilenceUsage: true,
			RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		}
		for _, c := range commands {
			root.AddCommand(c(t))
		}
		cli.Finish(root, t)
		return root
	}
}

// Run runs a command line with the given terminal and returns its exit code.
func Run(ctx context.Context, args []string, t cli.Terminal) int {
	return cli.Run(ctx, args, t, makeRoot)
}

// Output is a standard output that tests can watch while a command writes to it.
type Output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed and replaced at each write
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	return o.text.Write(p)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *Output) Lines() []string {
	text := strings.TrimSuffix(o.String(), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// Await waits until the written text satisfies a condition.
func (o *Output) Await(t *testing.T, what string, enough func(string) bool) {
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

func NewOutput() *Output { return &Output{changed: make(chan struct{})} }

// Command is a weir command that is running inside the test.
type Command struct {
	Out, Err *Output
	cancel   context.CancelCauseFunc
	Done     chan struct{}
	Code     int
}

// Wait waits for the end of the command and returns its exit code.
func (c *Command) Wait(t *testing.T) int {
	t.Helper()
	select {
	case <-c.Done:
		return c.Code
	case <-time.After(2 * time.Minute):
		t.Fatalf("the command does not end; it said %q", c.Err)
		return -1
	}
}

// Interrupt interrupts the command like Ctrl-C. It waits for the end of the command and returns the
// exit code.
func (c *Command) Interrupt(t *testing.T) int {
	t.Helper()
	c.cancel(explain.ErrInterrupted)
	return c.Wait(t)
}

// Start starts a command line with the given text on standard input. The command runs until it ends
// by itself or the test ends.
func Start(t *testing.T, stdin string, args ...string) *Command {
	t.Helper()
	return StartTo(t, NewOutput(), strings.NewReader(stdin), args...)
}

// StartTo starts a command line, like Start, with the given output and input. Several commands can
// share the output, and the input can stay open.
func StartTo(t *testing.T, out *Output, in io.Reader, args ...string) *Command {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &Command{Out: out, Err: NewOutput(), cancel: cancel, Done: make(chan struct{})}
	go func() {
		defer close(c.Done)
		c.Code = Run(ctx, args, cli.Terminal{In: in, Out: c.Out, Err: c.Err, Interrupt: func() { cancel(explain.ErrInterrupted) }})
	}()
	t.Cleanup(func() { cancel(explain.ErrInterrupted); <-c.Done })
	return c
}

// MustRun runs a command line and requires success. It returns the standard output.
func MustRun(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	c := Start(t, stdin, args...)
	if code := c.Wait(t); code != cli.ExitDone {
		t.Fatalf("weir %s: exit code %d, %s", strings.Join(args, " "), code, c.Err)
	}
	return c.Out.String()
}

// Kinesis starts a server without limits on calls per second, because a limit would refuse more
// calls the faster the machine is. It returns the server and the flag that sets its endpoint.
func Kinesis(t *testing.T) (*kinesistest.Server, string) {
	t.Helper()
	s := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true})
	return s, "--endpoint=" + s.URL()
}

// Numbered returns n lines of JSON. Each has a key from a to e and a number.
func Numbered(n int) (text string, lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf(`{"key":"%c","n":%d}`, 'a'+i%5, i))
	}
	return strings.Join(lines, "\n") + "\n", lines
}

// Decode decodes the output of a command with -o json.
func Decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %.500q", err, text)
	}
	return v
}

// MustExit runs a command line and requires an exit code. It returns both outputs.
func MustExit(t *testing.T, code int, args ...string) (out, said string) {
	t.Helper()
	c := Start(t, "", args...)
	if got := c.Wait(t); got != code {
		t.Fatalf("weir %s: exit code %d, want %d; %s%s", strings.Join(args, " "), got, code, c.Out, c.Err)
	}
	return c.Out.String(), c.Err.String()
}

// Answered runs a command line whose question is answered with text.
func Answered(t *testing.T, text string, args ...string) (code int, out, said string) {
	t.Helper()
	o, e := NewOutput(), NewOutput()
	code = Run(t.Context(), args, cli.Terminal{In: strings.NewReader(text), Out: o, Err: e, Asks: true})
	return code, o.String(), e.String()
}
