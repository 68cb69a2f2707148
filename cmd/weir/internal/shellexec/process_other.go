//go:build !unix

package shellexec

import (
	"context"
	"os"
	"os/exec"
)

// passesDescriptors says that a command can get more than its three standard ones.
const passesDescriptors = false

func Shell(ctx context.Context, command string) *exec.Cmd {
	return exec.CommandContext(ctx, "cmd", "/C", command)
}

func OwnGroup(*exec.Cmd) {}

// EndGroup ends a command. There is no way to ask it, nor to reach what it started.
func EndGroup(cmd *exec.Cmd, _ bool) error {
	if cmd.Process == nil {
		return os.ErrProcessDone
	}
	return cmd.Process.Kill()
}
