//go:build !unix

package producer

import "time"

// began is when the process began to measure.
var began = time.Now()

// cpuTime returns the time since began, where the CPU time is not known.
func cpuTime() time.Duration { return time.Since(began) }
