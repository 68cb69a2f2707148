//go:build unix

package sim

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time of this process, including the kernel's.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
