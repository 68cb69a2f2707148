package demo

import "time"

// rate is how many flights a second to put: what is left over the time that is left. While the script still has events
// to show, the rest is stretched, so that traffic gets thinner when a slow machine is late but never ends before the
// last event; afterwards it is put quickly,
// and never so slowly that the last few take for ever.
func rate(left int, untilEnd time.Duration, scriptDone bool) float64 {
	horizon := max(untilEnd, 8*time.Second)
	if scriptDone {
		horizon = min(max(untilEnd, time.Second), 3*time.Second)
		return max(float64(left)/horizon.Seconds(), 100)
	}
	return float64(left) / horizon.Seconds()
}
