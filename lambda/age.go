package lambda

import "time"

// tooOld returns how many of n records, from the first on, arrived more than maxAge before now. A
// maxAge of 0 is no limit, and a record that arrived in 1970 has no known time.
func tooOld(n int, arrived func(i int) time.Time, now time.Time, maxAge time.Duration) (old int) {
	for maxAge > 0 && old < n {
		if at := arrived(old); at.UnixMilli() == 0 || now.Sub(at) <= maxAge {
			break
		}
		old++
	}
	return old
}
