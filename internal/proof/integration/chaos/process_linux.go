package main

import "syscall"

// attributes makes the system put a worker into its own process group, which Ctrl-C in a terminal
// does not reach. The system also kills the worker if this process is killed, even while the worker
// is frozen.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
