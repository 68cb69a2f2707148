//go:build !unix

package producer

import "time"

// began is when the process began to measure.
var began = time.Now()

// cpuTime returns the time since began, because the CPU time is not known on this system.
func cpuTime() time.Duration { return time.Since(began) }
