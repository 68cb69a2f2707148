//go:build !unix

package demo

import (
	"io"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

// askToStop writes to the worker's standard input: there is no signal for it here.
func askToStop(p *process) error {
	_, err := io.WriteString(p.lifeline, "stop\n")
	return err
}

// awaitStop returns when the parent asks to stop or is gone.
func awaitStop(lifeline io.Reader) (asked bool) {
	n, _ := lifeline.Read(make([]byte, 1))
	return n > 0
}
