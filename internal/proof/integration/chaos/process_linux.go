package main

import "syscall"

// attributes puts a worker into a separate process group, which a terminal's Ctrl-C does not reach,
// and kills it if this process is killed, even while it is frozen.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
