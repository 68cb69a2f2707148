// Package figures formats numbers for users in the same way in all commands: 20,000 records, 64
// KiB, 1.5 s, 2 h 5 min.
//
// Numbers that serve as names are not formatted: epochs, terms, versions, lines, ports, sequence
// numbers. Durations that a user types for a flag (1h30m) and numbers in JSON are not formatted
// either.
package figures

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Count formats a number with commas between the thousands.
func Count[N int | int32 | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Bytes formats a number of bytes in a suitable unit, with one decimal unless the decimal is 0.
func Bytes(n int64) string {
	size, unit := float64(n), 0
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for size >= 1023.95 && unit < len(units)-1 { // 1024.0 after rounding is 1 of the next unit
		size /= 1024
		unit++
	}
	return short(size) + " " + units[unit]
}

// Duration formats a duration with at most two units: 340 ms, 1.5 s, 5 min 30 s, 2 h 5 min, 3 d 4
// h.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == 0:
		return "0 s"
	case d < 0:
		return "-" + Duration(-max(d, -math.MaxInt64))
	case d < time.Second-time.Millisecond/2:
		return short(float64(d.Round(time.Millisecond).Milliseconds())) + " ms"
	case d < 2*time.Minute-50*time.Millisecond:
		return short(d.Seconds()) + " s"
	case d < 2*time.Hour-time.Second/2:
		return both(d.Round(time.Second), time.Minute, "min", time.Second, "s")
	case d < 2*day-time.Minute/2:
		return both(d.Round(time.Minute), time.Hour, "h", time.Minute, "min")
	}
	return both(d.Round(time.Hour), day, "d", time.Hour, "h")
}

func both(d, large time.Duration, one string, small time.Duration, other string) string {
	s := fmt.Sprintf("%d %s", d/large, one)
	if rest := d % large / small; rest > 0 {
		s += fmt.Sprintf(" %d %s", rest, other)
	}
	return s
}

// short formats a number with one decimal, unless the decimal is 0.
func short(f float64) string { return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0") }
