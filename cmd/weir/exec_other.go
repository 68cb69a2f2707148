//go:build !unix

package main

import (
	"context"
	"os"
	"os/exec"
)

// passesDescriptors says that a command can get more than its three standard ones.
const passesDescriptors = false

func shell(ctx context.Context, command string) *exec.Cmd {
	return exec.CommandContext(ctx, "cmd", "/C", command)
}

func ownGroup(*exec.Cmd) {}

// endGroup ends a command. There is no way to ask it, nor to reach what it started.
func endGroup(cmd *exec.Cmd, _ bool) error {
	if cmd.Process == nil {
		return os.ErrProcessDone
	}
	return cmd.Process.Kill()
}
