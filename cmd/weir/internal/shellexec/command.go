// Package shellexec runs the shell command of --exec for batches of records and for dead letters.
// The command reports success with its exit code, or with a result for each record.
package shellexec

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/deadletter"
)

// Handler is a handler that passes each batch to a shell command.
type Handler struct {
	Terminal cli.Terminal
	Command  string
	Format   cli.Format
	// Credentials passes the worker's credentials to the command.
	Credentials bool
	// Grace is how long a command may take to end after it was asked to end. It defaults to the
	// constant [Grace].
	Grace time.Duration
}

// Grace is how long a command may take to end after it was asked to end. It is killed after that
// time.
const Grace = 5 * time.Second

func (e Handler) Handle(ctx context.Context, b *weir.Batch) error {
	var input []byte
	var err error
	for _, r := range b.Records {
		if input, err = records.Append(input, e.Format, b.Shard, r); err != nil {
			return weir.Stop(err)
		}
	}
	if len(b.Records) == 0 {
		return nil // the end of a shard has no records for the command
	}
	return e.run(ctx, input, "WEIR_STREAM="+b.Stream, "WEIR_SHARD="+b.Shard, "WEIR_EPOCH="+strconv.FormatUint(b.Epoch, 10))
}

// run runs the command with the given input. env contains additional environment variables.
func (e Handler) run(ctx context.Context, input []byte, env ...string) error {
	return e.runWith(ctx, bytes.NewReader(input), nil, env...)
}

// runWith runs the command, like run. It also passes files to the command, as descriptors from 3
// on.
func (e Handler) runWith(ctx context.Context, input io.Reader, files []*os.File, env ...string) error {
	cmd := Shell(ctx, e.Command)
	cmd.Env, cmd.ExtraFiles = append(Environment(e.Credentials), env...), files
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, e.Terminal.Out, standardError(e.Terminal)
	// When ctx ends, the command and all its child processes are asked to end, and killed later.
	// Ctrl-C at the terminal does not reach them, because only the worker stops them.
	OwnGroup(cmd)
	cmd.Cancel = func() error { return EndGroup(cmd, false) }
	cmd.WaitDelay = cmp.Or(e.Grace, Grace)
	err := Run(cmd, nil)
	// exec.ErrWaitDelay means that the command exited with 0, although a process that it started is
	// still running.
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	if ctx.Err() != nil {
		_ = EndGroup(cmd, true) // kill the remaining processes of the group
		return context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("the command failed: %w%s", err, hint(exit.ExitCode()))
	}
	return weir.Stop(fmt.Errorf("%w: %w", ErrNotRun, err))
}

// ErrNotRun is wrapped by the error of a handler whose command could not be started at all.
var ErrNotRun = errors.New("the command cannot be run")

// Run runs the command with an input that the caller has formatted.
func (e Handler) Run(ctx context.Context, input []byte, env ...string) error {
	return e.run(ctx, input, env...)
}

// hint explains the exit codes with which a shell reports that it could not run a program. It
// returns "" for other codes.
func hint(code int) string {
	switch code {
	case 126:
		return ": the shell could not run the program; is it executable (chmod +x), and built for this machine?"
	case 127:
		return ": the shell did not find the program; is it installed and in PATH, " +
			"and is a program in the working directory written as ./NAME?"
	}
	return ""
}

// commands contains the running commands. KillAll kills them if the program exits without waiting
// for them.
var commands struct {
	mu      sync.Mutex
	running map[*exec.Cmd]bool
}

// Run runs a command. If begun is not nil, it is called after the command has started.
func Run(cmd *exec.Cmd, begun func()) error {
	note := func(running bool) {
		commands.mu.Lock()
		defer commands.mu.Unlock()
		if commands.running == nil {
			commands.running = map[*exec.Cmd]bool{}
		}
		if commands.running[cmd] = running; !running {
			delete(commands.running, cmd)
		}
	}
	runtime.LockOSThread() // the command ends with this thread, so the thread must last
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return err
	}
	note(true)
	defer note(false)
	if begun != nil {
		begun()
	}
	return cmd.Wait()
}

// KillAll kills all running commands. It is called before the program exits without waiting for
// them.
func KillAll() {
	commands.mu.Lock()
	defer commands.mu.Unlock()
	for cmd := range commands.running {
		_ = EndGroup(cmd, true)
	}
}

// ofWorker lists the environment variables with the worker's credentials for AWS and its store.
// Commands of --exec usually do not need them, and commands handle data from strangers.
var ofWorker = []string{
	"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE",
	"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN",
	"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", cli.StoreVariable, cli.DeadVariable,
}

func RegisterCredentials(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "exec-credentials", false, "pass the worker's AWS credentials, "+cli.StoreVariable+" and "+cli.DeadVariable+" to the command (by default it does not get them)")
}

// Environment returns the environment for a command, without the variables about its records. If
// credentials is false, it omits the worker's credentials.
func Environment(credentials bool) []string {
	all := os.Environ()
	if credentials {
		return all
	}
	return slices.DeleteFunc(all, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.ContainsFunc(ofWorker, func(kept string) bool { return strings.EqualFold(kept, name) })
	})
}

// Letter passes a dead letter to the command, as a batch of one record.
func (e Handler) Letter(ctx context.Context, i *deadletter.Item) error {
	r := weir.Record{Data: i.Data, PartitionKey: i.PartitionKey, SequenceNumber: i.SequenceNumber}
	input := append(slices.Clone(i.Data), '\n')
	if e.Format == cli.FormatJSON {
		var err error
		if input, err = records.AppendObject(nil, records.ObjectOf(i.Shard, i.Position, i.Arrived, r)); err != nil {
			return err
		}
	}
	return e.run(ctx, input, letterEnvironment(i)...)
}

func letterEnvironment(i *deadletter.Item) []string {
	if r, ok := i.Queue(); ok {
		return []string{"WEIR_QUEUE=" + r.Queue, "WEIR_RECORD=" + i.Position, "WEIR_LETTER=" + i.ID}
	}
	return []string{"WEIR_STREAM=" + i.Stream, "WEIR_SHARD=" + i.Shard, "WEIR_EPOCH=" + strconv.FormatUint(i.Epoch, 10), "WEIR_LETTER=" + i.ID}
}
