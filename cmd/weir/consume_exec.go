package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/weir-go/weir"
)

// executor is the handler that gives each batch to a shell command.
type executor struct {
	t       terminal
	command string
	out     format
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
	cmd := shell(ctx, e.command)
	cmd.Env = append(os.Environ(), "WEIR_STREAM="+b.Stream, "WEIR_SHARD="+b.Shard, "WEIR_EPOCH="+strconv.FormatUint(b.Epoch, 10))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), e.t.out, e.t.err
	// Asked first, with everything it started, then killed. Ctrl-C at the terminal does not reach it: the worker decides.
	ownGroup(cmd)
	cmd.Cancel = func() error { return endGroup(cmd, false) }
	cmd.WaitDelay = grace
	err = cmd.Run()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) { // it exited with 0, though something it started goes on
		return nil
	}
	if ctx.Err() != nil {
		_ = endGroup(cmd, true) // what is left of it
		return context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		e.t.note("the command for %s ended with %v; the same %d records will be given to it again", b.Shard, exit, len(b.Records))
		return fmt.Errorf("the command failed: %w", err)
	}
	return weir.Stop(fmt.Errorf("the command cannot be run: %w", err))
}
