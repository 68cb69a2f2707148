package queuestate

import (
	"fmt"
	"strconv"
	"time"
)

// Count formats a number with commas.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + one + "s"
}

// span formats a duration after "the last".
func span(d time.Duration) string {
	if d == time.Hour {
		return "hour"
	}
	return duration(d)
}

// duration formats a whole number of hours or days.
func duration(d time.Duration) string {
	switch {
	case d >= 48*time.Hour && d%(24*time.Hour) == 0:
		return fmt.Sprintf("%d d", d/(24*time.Hour))
	case d >= time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return d.String()
}
