//go:build unix && !linux

package shellexec

import "syscall"

// endWithThread does nothing. On this system, a command outlives a worker that is killed.
func endWithThread(*syscall.SysProcAttr) {}
