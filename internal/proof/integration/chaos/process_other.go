//go:build !linux

package main

import "syscall"

// attributes puts a worker into a separate process group, which a terminal's Ctrl-C does not reach.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
