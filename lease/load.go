package lease

import (
	"fmt"
	"math"
)

// Load is the throughput of a shard as a class on a logarithmic scale. 0 is unknown and 1 is idle.
// A higher class n is about 2^(n/2) bytes per second. A class fits in a byte, and small changes of
// the throughput do not change it.
type Load uint8

// MaxLoad is the highest class that a store accepts. It is about a terabyte per second.
const MaxLoad Load = 80

// LoadOf returns the nearest class for a throughput. Less than one byte per second and NaN count as
// idle.
func LoadOf(bytesPerSecond float64) Load {
	if !(bytesPerSecond >= 1) {
		return 1
	}
	return Load(min(max(math.Round(2*math.Log2(bytesPerSecond)), 2), float64(MaxLoad)))
}

// Bytes returns the bytes per second of the class. It returns 0 for unknown and idle.
func (l Load) Bytes() float64 {
	if l <= 1 {
		return 0
	}
	return math.Pow(2, float64(min(l, MaxLoad))/2)
}

// String returns "unknown", "idle" or a rounded rate such as "64 KiB/s".
func (l Load) String() string {
	switch b := l.Bytes(); {
	case l == 0:
		return "unknown"
	case l == 1:
		return "idle"
	case b < 1<<10:
		return fmt.Sprintf("%.0f B/s", b)
	case b < 1<<20:
		return fmt.Sprintf("%.3g KiB/s", b/(1<<10))
	case b < 1<<30:
		return fmt.Sprintf("%.3g MiB/s", b/(1<<20))
	default:
		return fmt.Sprintf("%.4g GiB/s", b/(1<<30))
	}
}
