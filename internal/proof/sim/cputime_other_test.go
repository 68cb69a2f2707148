//go:build !unix

package sim

import "time"

// cpuTime returns 0, because the CPU time is not available on this system.
func cpuTime() time.Duration { return 0 }
