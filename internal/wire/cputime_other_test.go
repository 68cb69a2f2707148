//go:build !unix

package wire

import (
	"time"
)

// cpuTime is not supported here.
func cpuTime() (time.Duration, bool) { return 0, false }
