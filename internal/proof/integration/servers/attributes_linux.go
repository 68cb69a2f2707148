package servers

import "syscall"

// attributes makes the system run a server as another user, and kill the server if this process is
// killed.
func attributes(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: as, Pdeathsig: syscall.SIGKILL}
}
