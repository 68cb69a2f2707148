//go:build unix

package shellexec

import (
	"context"
	"os"
	"os/exec"
	"syscall"
)

// passesDescriptors says that a command can get more than its three standard ones.
const passesDescriptors = true

func Shell(ctx context.Context, command string) *exec.Cmd {
	return exec.CommandContext(ctx, "/bin/sh", "-c", command)
}

func OwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithThread(cmd.SysProcAttr)
}

// EndGroup asks or forces a command and everything that it started to end.
func EndGroup(cmd *exec.Cmd, force bool) error {
	signal := syscall.SIGTERM
	if force {
		signal = syscall.SIGKILL
	}
	if cmd.Process == nil {
		return os.ErrProcessDone
	}
	if err := syscall.Kill(-cmd.Process.Pid, signal); err != nil {
		return os.ErrProcessDone // Wait expects it if the process is gone
	}
	return nil
}
