// Package mono has points in time in eight bytes and without a pointer, where a time.Time has 24
// and one: ten thousand idle shards keep dozens of them each.
package mono

import "time"

// Time is a point in time on the monotonic clock, in nanoseconds since some moment near the
// beginning of the process. Zero is none; no point in time that matters is that. It may be
// negative.
type Time int64

// origin is what times count from: a little before anything can happen.
var origin = time.Now().Add(-time.Minute)

// Now is the time.
func Now() Time { return Of(time.Now()) }

// Of is t; that of the zero time is zero.
func Of(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.Sub(origin))
}

// Time is t for people and for other packages: the zero time for zero. By the wall clock it is as
// long ago as it is now.
func (t Time) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	now := time.Now()
	return now.Add(t.Sub(Of(now)))
}

// IsZero reports whether there is none.
func (t Time) IsZero() bool { return t == 0 }

// Sub is how much later t is than u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Add is d later.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Since is how long ago t was.
func Since(t Time) time.Duration { return Now().Sub(t) }

// Until is how long it is until t; never more than nothing when t is zero.
func Until(t Time) time.Duration {
	if t == 0 {
		return 0
	}
	return t.Sub(Now())
}
