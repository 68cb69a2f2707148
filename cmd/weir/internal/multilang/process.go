package multilang

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/shellexec"
)

// program is the command of executableName, and where the output of its processes goes.
type program struct {
	args     []string // args[0] is the path
	env      []string
	out, err io.Writer
	timeout  time.Duration // to wait for a message; 0 is no limit
	grace    graces
	warn     func(shard, text string)
}

// graces are the times that a process has to end.
type graces struct{ input, term time.Duration }

// findProgram returns the arguments of a command, which is divided at spaces, without a shell.
func findProgram(command string) ([]string, error) {
	args := strings.FieldsFunc(command, func(r rune) bool { return r == ' ' })
	if len(args) == 0 {
		return nil, errors.New("executableName is empty: set it to the command of the program")
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, fmt.Errorf("executableName: the program %.140q cannot be run: %w; is it executable (chmod +x), and in PATH or written with a slash?", args[0], rootOf(err))
	}
	args[0] = path
	return args, nil
}

func rootOf(err error) error {
	var e *exec.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

const (
	mostPending = 64          // messages that the program may send without waiting for answers
	longestLine = 64 << 10    // longer lines are output, and are passed on in pieces
	keptOutput  = 2 << 10     // bytes of standard error for the report of a failure
	drainAfter  = time.Second // time to read the rest of the output after the exit
)

// process is a running process of the program. Its three goroutines end with it.
type process struct {
	of       *program
	shard    string
	cmd      *exec.Cmd
	stdin    *os.File
	messages chan message  // closed at the end of standard output
	exited   chan struct{} // closed when the process has ended; then why is set
	why      error
	readers  sync.WaitGroup

	mu          sync.Mutex // guards the fields below
	outstanding action     // the action without a status, or ""
	finished    action     // the action before
	closing     bool       // the program gets nothing more, so its messages are dropped
	killed      error      // why weir has killed it
	last        []byte     // the end of standard error
}

// start starts a process for a shard. A script without "#!" is run by /bin/sh.
func (p *program) start(shardID string) (*process, error) {
	c, err := p.startWith(shardID, p.args)
	if errors.Is(err, syscall.ENOEXEC) {
		return p.startWith(shardID, append([]string{"/bin/sh"}, p.args...))
	}
	return c, err
}

func (p *program) startWith(shardID string, args []string) (*process, error) {
	var pipes []*os.File
	closeAll := func() {
		for _, f := range pipes {
			f.Close()
		}
	}
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll()
			return nil, err
		}
		pipes = append(pipes, r, w)
	}
	stdin, stdout, stderr := pipes[1], pipes[2], pipes[4]
	enlarge(stdout)
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // end ends it
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.env, pipes[0], pipes[3], pipes[5]
	shellexec.OwnGroup(cmd)
	c := &process{of: p, shard: shardID, cmd: cmd, stdin: stdin, messages: make(chan message, mostPending), exited: make(chan struct{})}
	begun := make(chan struct{})
	go func() { // ends with the process; end waits for that
		defer close(c.exited)
		c.why = shellexec.Run(cmd, func() { close(begun) })
		if cmd.Process != nil {
			_ = shellexec.EndGroup(cmd, true) // kill the remaining processes of the group
		}
	}()
	select {
	case <-begun:
	case <-c.exited:
		select {
		case <-begun: // it started, and has already ended
		default:
			closeAll()
			return nil, c.why
		}
	}
	for _, i := range []int{0, 3, 5} {
		pipes[i].Close()
	}
	c.readers.Go(func() { c.readOutput(stdout) })
	c.readers.Go(func() { c.readErrors(stderr) })
	return c, nil
}

// readOutput reads standard output to its end. It passes on what is no message.
func (c *process) readOutput(from *os.File) {
	defer from.Close()
	defer close(c.messages)
	in := bufio.NewReaderSize(from, longestLine)
	whole := true // the next piece begins a line
	for {
		piece, err := in.ReadSlice('\n')
		m, is := message{}, false
		if whole && (err == nil || err == io.EOF) {
			m, is = decode(piece)
		}
		switch {
		case is:
			c.receive(m)
		case len(bytes.TrimSpace(piece)) > 0:
			_, _ = c.of.out.Write(piece)
		}
		whole = err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// receive takes a message. It must not wait, because the writer of standard input may wait for the
// program, which may wait for its output to be read.
func (c *process) receive(m message) {
	c.mu.Lock()
	again := c.outstanding == "" || action(m.response) == c.finished && c.finished != c.outstanding
	if m.status && !again {
		c.finished, c.outstanding = c.outstanding, ""
	}
	closing := c.closing
	c.mu.Unlock()
	if closing || m.status && again {
		if !closing {
			c.of.warn(c.shard, "the program has sent a status that nothing waits for; it is ignored")
		}
		return
	}
	select {
	case c.messages <- m:
	default:
		c.kill(fmt.Errorf("it sent %d requests without waiting for answers", mostPending))
	}
}

// readErrors passes standard error on, also parts of lines.
func (c *process) readErrors(from *os.File) {
	defer from.Close()
	buf := make([]byte, longestLine)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			_, _ = c.of.err.Write(buf[:n])
			c.mu.Lock()
			c.last = append(c.last, buf[:n]...)
			c.last = append(c.last[:0], c.last[max(0, len(c.last)-keptOutput):]...)
			c.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// kill kills the process and the processes that it started. why is reported if weir has not killed
// it before.
func (c *process) kill(why error) {
	c.mu.Lock()
	c.killed = cmp.Or(c.killed, why)
	c.mu.Unlock()
	_ = shellexec.EndGroup(c.cmd, true)
}

// send writes a line to the program. It waits while the program does not read. It ends when the
// process ends.
func (c *process) send(line []byte) error {
	_, err := c.stdin.Write(line)
	return err
}

// expect notes that an action is outstanding.
func (c *process) expect(a action) {
	c.mu.Lock()
	c.outstanding = a
	c.mu.Unlock()
}

// end closes the input of the process and waits until it has ended. A process that does not end is
// asked with SIGTERM, and killed later: at once when ctx has ended.
func (c *process) end(ctx context.Context) error {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.stdin.Close()
	if !c.ends(ctx, c.of.grace.input) {
		c.of.warn(c.shard, fmt.Sprintf("the program has not ended %v after the end of its input; it gets SIGTERM", c.of.grace.input))
		_ = shellexec.EndGroup(c.cmd, false)
		if !c.ends(context.WithoutCancel(ctx), min(c.of.grace.term, short(ctx, c.of.grace.term))) {
			c.of.warn(c.shard, "the program has not ended after SIGTERM; it is killed")
			c.kill(errors.New("it did not end"))
			<-c.exited
		}
	}
	c.drain()
	return c.reason()
}

// short returns a second if ctx has ended, and d otherwise.
func short(ctx context.Context, d time.Duration) time.Duration {
	if ctx.Err() != nil {
		return time.Second
	}
	return d
}

// ends waits for the exit, at most for d, and at most for a second after the end of ctx.
func (c *process) ends(ctx context.Context, d time.Duration) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-c.exited:
		return true
	case <-late.C:
		return false
	case <-ctx.Done():
	}
	late.Reset(min(d, time.Second))
	select {
	case <-c.exited:
		return true
	case <-late.C:
		return false
	}
}

// drain waits until the output has been read to its end. A process of another group may keep the
// output open, so drain does not wait for long.
func (c *process) drain() {
	done := make(chan struct{})
	go func() { // ends with the readers
		c.readers.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(drainAfter):
		c.of.warn(c.shard, "another process keeps the output of the ended program open; it is no longer waited for")
	}
}

// reason returns why the process has ended, with the end of its standard error. It returns nil if
// it ended with exit status 0. It waits for the exit.
func (c *process) reason() error {
	<-c.exited
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.why
	switch {
	case c.killed != nil:
		err = fmt.Errorf("weir has killed it: %w", c.killed)
	case err == nil:
		return nil
	}
	if last := strings.TrimSpace(strings.ToValidUTF8(string(c.last), "?")); last != "" {
		return fmt.Errorf("%w; the end of its standard error: %s", err, strings.Join(strings.Fields(last), " "))
	}
	return err
}
