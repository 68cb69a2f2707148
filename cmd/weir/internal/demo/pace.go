package demo

import "time"

// rate is how many flights a second to put: what is left over the time that is left. While the
// script still has events to show, the rest is stretched, so that traffic gets thinner when a slow
// machine is late but never ends before the last event.
func rate(left int, untilEnd time.Duration, scriptDone bool) float64 {
	horizon := max(untilEnd, 8*time.Second)
	if scriptDone {
		horizon = max(untilEnd, 100*time.Millisecond)
	}
	return float64(left) / horizon.Seconds()
}

// hurry is when the flights should end once the script is done: as planned, but neither at once nor
// late.
func hurry(planned, now time.Duration) time.Duration {
	return max(min(planned, now+3*time.Second), now+time.Second)
}
