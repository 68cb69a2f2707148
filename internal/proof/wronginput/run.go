package wronginput

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

var table = flag.Bool("table", false, "print what came of each wrong input")

// atOnce is the number of concurrent processes. Most of them wait only for the CPU, and some for a
// fixed time.
const atOnce = 12

// Run runs the command with each input, as separate tests, several at the same time. With -table it
// prints the results.
func Run(t *testing.T, command Command, inputs []Input) {
	t.Helper()
	results := make([]*result, len(inputs))
	next := make(chan int)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for i := range next {
				in := inputs[i]
				t.Run(in.Subject+"/"+in.Name, func(t *testing.T) {
					r := run(t, command, in)
					results[i] = &r
					for _, p := range problems(r) {
						t.Error(p)
					}
					if t.Failed() {
						t.Logf("weir %s %q\nexit code %d after %s, standard error:\n%s\nstandard output: %.500q",
							in.Args, in.More, r.code, r.took, r.stderr, r.stdout)
					}
				})
			}
		})
	}
	for _, i := range longestFirst(inputs) {
		next <- i
	}
	close(next)
	workers.Wait()
	if *table {
		if err := printTable(os.Stdout, results); err != nil {
			t.Error(err)
		}
	}
}

// longestFirst sorts the inputs so that long waits begin early.
func longestFirst(inputs []Input) []int {
	order := make([]int, len(inputs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(inputs[b].limit() - inputs[a].limit()) })
	return order
}

func (in Input) limit() time.Duration {
	if in.Until == 0 {
		return wordWithin + slack
	}
	return in.Until + slack
}

// Process is a running command.
type Process struct {
	Out, Err *Stream
	cmd      *exec.Cmd
}

// Signal sends a signal to the process, unless the process has ended.
func (p *Process) Signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
}

func run(t *testing.T, command Command, in Input) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), in.limit())
	defer cancel()
	cmd := exec.CommandContext(ctx, command.Path, append(strings.Fields(in.Args), in.More...)...)
	cmd.Env = environment(command.Env, in.Env)
	cmd.Dir, cmd.SysProcAttr = command.Dir, command.Attr
	cmd.Stdin = in.Stdin
	cmd.WaitDelay = time.Second // an input may have no end
	p := &Process{Out: newStream(), Err: newStream(), cmd: cmd}
	cmd.Stdout, cmd.Stderr = p.Out, p.Err
	if in.Stdout != nil {
		cmd.Stdout = in.Stdout
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the exit code contains the result
		p.Out.end()
		p.Err.end()
	}()
	if in.During != nil {
		in.During(t, p)
	}
	<-ended
	r := result{input: in, code: cmd.ProcessState.ExitCode(), took: time.Since(p.Err.began), stdout: p.Out.String(), stderr: p.Err.String()}
	r.hung = ctx.Err() != nil
	r.word = r.took
	if first := p.Err.first(); first > 0 {
		r.word = first
	}
	return r
}

// environment joins lists of variables. If a name occurs twice, the last value counts.
func environment(lists ...[]string) []string {
	values := map[string]string{}
	for _, setting := range slices.Concat(lists...) {
		name, value, _ := strings.Cut(setting, "=")
		values[name] = value
	}
	var env []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		env = append(env, name+"="+values[name])
	}
	return env
}

// Stream is the output of a process. Tests may watch it.
type Stream struct {
	began time.Time

	mu      sync.Mutex
	text    bytes.Buffer
	word    time.Duration
	ended   bool
	changed chan struct{} // closed and replaced at every change
}

func newStream() *Stream { return &Stream{began: time.Now(), changed: make(chan struct{})} }

func (s *Stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.word == 0 {
		s.word = time.Since(s.began)
	}
	close(s.changed)
	s.changed = make(chan struct{})
	return s.text.Write(p)
}

func (s *Stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Stream) first() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.word
}

func (s *Stream) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// Await waits for a text, or for the end of the process.
func (s *Stream) Await(text string) {
	for {
		s.mu.Lock()
		enough, changed := s.ended || strings.Contains(s.text.String(), text), s.changed
		s.mu.Unlock()
		if enough {
			return
		}
		<-changed
	}
}

// printTable prints the results in the order of the inputs.
func printTable(to io.Writer, results []*result) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SUBJECT\tINPUT\tEXIT\tWORD\tSENTENCE")
	n := 0
	for _, r := range results {
		if r == nil {
			continue // not selected
		}
		n++
		said, _, _ := strings.Cut(r.stderr, "\nSee: ")
		said = strings.ReplaceAll(strings.TrimSpace(said), "\nweir: ", "\n")
		said = strings.ReplaceAll(strings.TrimPrefix(said, "weir: "), "\n", " / ")
		fmt.Fprintf(w, "%s\t%s\t%d\t%.1f s\t%s\n", r.input.Subject, r.input.Name, r.code, r.word.Seconds(), said)
	}
	fmt.Fprintf(w, "%d wrong inputs\n", n)
	return w.Flush()
}
