//go:build !linux

package main

import "syscall"

// attributes put a worker into a process group of its own, which a terminal's Ctrl-C does not
// reach.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
