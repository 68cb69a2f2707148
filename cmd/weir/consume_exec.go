package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/weir-go/weir"
)

// executor is the handler that gives each batch to a shell command.
type executor struct {
	t       terminal
	command string
	out     format
	// the command gets the worker's credentials, too
	credentials bool
}

// grace is how long a command may take to end when it is asked to, before it is killed.
const grace = 5 * time.Second

func (e executor) Handle(ctx context.Context, b *weir.Batch) error {
	var input []byte
	var err error
	for _, r := range b.Records {
		if input, err = appendRecord(input, e.out, b.Shard, r); err != nil {
			return weir.Stop(err)
		}
	}
	if len(b.Records) == 0 {
		return nil // the end of a shard has nothing for a command
	}
	return e.run(ctx, input, "WEIR_STREAM="+b.Stream, "WEIR_SHARD="+b.Shard, "WEIR_EPOCH="+strconv.FormatUint(b.Epoch, 10))
}

// run gives the command its input, with some more in its environment.
func (e executor) run(ctx context.Context, input []byte, env ...string) error {
	return e.runWith(ctx, bytes.NewReader(input), nil, env...)
}

// runWith is run with files that the command finds as its descriptors from 3 on.
func (e executor) runWith(ctx context.Context, input io.Reader, files []*os.File, env ...string) error {
	cmd := shell(ctx, e.command)
	cmd.Env, cmd.ExtraFiles = append(environment(e.credentials), env...), files
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, e.t.out, e.t.err
	// Asked first, with everything it started, then killed. Ctrl-C at the terminal does not reach
	// it: the worker decides.
	ownGroup(cmd)
	cmd.Cancel = func() error { return endGroup(cmd, false) }
	cmd.WaitDelay = grace
	err := runNoted(cmd, nil)
	// it exited with 0, though something it started goes on
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	if ctx.Err() != nil {
		_ = endGroup(cmd, true) // what is left of it
		return context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("the command failed: %w", err)
	}
	return weir.Stop(fmt.Errorf("the command cannot be run: %w", err))
}

// commands are those that run now, for the end at which nobody waits for them.
var commands struct {
	mu      sync.Mutex
	running map[*exec.Cmd]bool
}

// runNoted runs a command. begun, if there is one, is called when it has started.
func runNoted(cmd *exec.Cmd, begun func()) error {
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
	runtime.LockOSThread() // which the command lives no longer than
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

// killCommands ends every command that still runs, before the program ends at once.
func killCommands() {
	commands.mu.Lock()
	defer commands.mu.Unlock()
	for cmd := range commands.running {
		_ = endGroup(cmd, true)
	}
}
