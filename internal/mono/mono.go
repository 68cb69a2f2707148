// Package mono represents points in time in eight bytes without a pointer. A time.Time has 24 bytes
// and a pointer. Each of ten thousand idle shards stores dozens of points in time.
package mono

import "time"

// Time is a point in time on the monotonic clock, in nanoseconds since a moment near the start of
// the process. It may be negative. Zero means no time. No relevant time has that value.
type Time int64

// origin is the zero of the clock. It is slightly before the first possible event.
var origin = time.Now().Add(-time.Minute)

// Now returns the current time.
func Now() Time { return Of(time.Now()) }

// Of converts t to a Time. The zero time becomes zero.
func Of(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.Sub(origin))
}

// Time converts t to a time.Time, for people and for other packages. Zero becomes the zero time.
// The result is as long ago on the wall clock as t is on the monotonic clock.
func (t Time) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	now := time.Now()
	return now.Add(t.Sub(Of(now)))
}

// IsZero reports whether t is no time.
func (t Time) IsZero() bool { return t == 0 }

// Sub returns the duration from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Add returns t plus d.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Since returns the time since t.
func Since(t Time) time.Duration { return Now().Sub(t) }

// Until returns the time until t. It is zero if t is zero.
func Until(t Time) time.Duration {
	if t == 0 {
		return 0
	}
	return t.Sub(Now())
}
