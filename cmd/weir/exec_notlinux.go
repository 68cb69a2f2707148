//go:build unix && !linux

package main

import "syscall"

// endWithThread does nothing: a command outlives a worker that is killed.
func endWithThread(*syscall.SysProcAttr) {}
