//go:build !unix

package demo

import (
	"io"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

// askToStop writes to the standard input of the worker, because this system has no signal for it.
func askToStop(p *process) error {
	_, err := io.WriteString(p.lifeline, "stop\n")
	return err
}

// awaitStop returns when the parent asks the worker to stop or has died.
func awaitStop(lifeline io.Reader) (asked bool) {
	n, _ := lifeline.Read(make([]byte, 1))
	return n > 0
}
