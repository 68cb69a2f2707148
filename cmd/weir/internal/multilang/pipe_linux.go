package multilang

import (
	"os"
	"syscall"
)

// enlarge sets the size of a pipe to 1 MiB, if the system allows it. A program that uses aws-kcl
// fails if it cannot write its output at once.
func enlarge(pipe *os.File) {
	const setPipeSize = 1031 // F_SETPIPE_SZ
	raw, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, setPipeSize, 1<<20) })
}
