// Package mono represents points in time in eight bytes without a pointer. A time.Time has 24 bytes
// and a pointer, and ten thousand idle shards keep dozens of times each.
package mono

import "time"

// Time is a point in time on the monotonic clock, in nanoseconds since a moment near the beginning
// of the process. Zero means no time. No relevant time has that value. It may be negative.
type Time int64

// origin is the zero of the clock: slightly before the first possible event.
var origin = time.Now().Add(-time.Minute)

// Now returns the present time.
func Now() Time { return Of(time.Now()) }

// Of converts t. The zero time becomes zero.
func Of(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.Sub(origin))
}

// Time converts t for people and for other packages. Zero becomes the zero time. The result is as
// long ago on the wall clock as t is on the monotonic clock.
func (t Time) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	now := time.Now()
	return now.Add(t.Sub(Of(now)))
}

// IsZero reports whether t is no time.
func (t Time) IsZero() bool { return t == 0 }

// Sub returns how much later t is than u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Add returns the time d later.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Since returns how long ago t was.
func Since(t Time) time.Duration { return Now().Sub(t) }

// Until returns how long it is until t. It is never above zero if t is zero.
func Until(t Time) time.Duration {
	if t == 0 {
		return 0
	}
	return t.Sub(Now())
}
