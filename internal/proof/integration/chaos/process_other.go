//go:build !linux

package main

import "syscall"

// attributes makes the system put a worker into its own process group, which Ctrl-C in a terminal
// does not reach.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
