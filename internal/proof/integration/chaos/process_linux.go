package main

import "syscall"

// attributes put a worker into a process group of its own, which a terminal's Ctrl-C does not
// reach, and kill it should this process be killed, also while it is frozen.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
