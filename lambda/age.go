package lambda

import "time"

// tooOld returns the number of records at the start of a batch that are too old. A record is too
// old if it arrived more than maxAge before now. n is the number of records in the batch. A maxAge
// of 0 means no limit. A record whose arrival time is in 1970 has no known arrival time, so it is
// never too old.
func tooOld(n int, arrived func(i int) time.Time, now time.Time, maxAge time.Duration) (old int) {
	for maxAge > 0 && old < n {
		if at := arrived(old); at.UnixMilli() == 0 || now.Sub(at) <= maxAge {
			break
		}
		old++
	}
	return old
}
