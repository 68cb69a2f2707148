//go:build !linux

package servers

import "syscall"

// attributes makes the system run a server as another user.
func attributes(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: as}
}
