//go:build !unix

package shellexec

import (
	"context"
	"os"
	"os/exec"
)

// passesDescriptors reports whether a command can receive more than its three standard descriptors.
const passesDescriptors = false

func Shell(ctx context.Context, command string) *exec.Cmd {
	return exec.CommandContext(ctx, "cmd", "/C", command)
}

func OwnGroup(*exec.Cmd) {}

// EndGroup kills a command. On this system it can neither ask the command to end, nor end the
// processes that the command started.
func EndGroup(cmd *exec.Cmd, _ bool) error {
	if cmd.Process == nil {
		return os.ErrProcessDone
	}
	return cmd.Process.Kill()
}
