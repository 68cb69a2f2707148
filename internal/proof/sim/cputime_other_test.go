//go:build !unix

package sim

import "time"

// cpuTime is not available here.
func cpuTime() time.Duration { return 0 }
