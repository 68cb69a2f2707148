package demo

import "time"

// rate returns how many flights a second to put: the remaining flights divided by the remaining
// time. While the script still has events to show, the time is extended, so that on a slow machine
// traffic gets thinner but does not end before the last event.
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
