//go:build unix

package demo

import (
	"io"
	"os/exec"
	"syscall"
)

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func askToStop(p *process) error { return p.cmd.Process.Signal(syscall.SIGTERM) }

// awaitStop returns when the parent has died. A request to stop comes as a signal instead.
func awaitStop(lifeline io.Reader) (asked bool) {
	_, _ = io.Copy(io.Discard, lifeline)
	return false
}
