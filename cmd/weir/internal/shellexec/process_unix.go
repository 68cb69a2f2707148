//go:build unix

package shellexec

import (
	"context"
	"os"
	"os/exec"
	"syscall"
)

// passesDescriptors reports whether a command can receive more than its three standard descriptors.
const passesDescriptors = true

func Shell(ctx context.Context, command string) *exec.Cmd {
	return exec.CommandContext(ctx, "/bin/sh", "-c", command)
}

func OwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithThread(cmd.SysProcAttr)
}

// EndGroup ends a command and all processes that it started. If force is false, it asks them to
// end. Otherwise it kills them.
func EndGroup(cmd *exec.Cmd, force bool) error {
	signal := syscall.SIGTERM
	if force {
		signal = syscall.SIGKILL
	}
	if cmd.Process == nil {
		return os.ErrProcessDone
	}
	if err := syscall.Kill(-cmd.Process.Pid, signal); err != nil {
		return os.ErrProcessDone // Wait expects this error if the process is gone
	}
	return nil
}
