package lease

import (
	"fmt"
	"math"
)

// Load is how much a shard brings, as a class on a logarithmic scale: 0 is not said, 1 is idle, and
// n above that stands for about 2^(n/2) bytes a second. A class fits in a byte, and small changes
// do not change it.
type Load uint8

// MaxLoad is the highest class that a store takes, about a terabyte a second.
const MaxLoad Load = 80

// LoadOf is the class nearest to a number of bytes per second. Anything below one byte a second,
// and what is no number, is idle.
func LoadOf(bytesPerSecond float64) Load {
	if !(bytesPerSecond >= 1) {
		return 1
	}
	return Load(min(max(math.Round(2*math.Log2(bytesPerSecond)), 2), float64(MaxLoad)))
}

// Bytes is the number of bytes per second that the class stands for: 0 when it is not said or idle.
func (l Load) Bytes() float64 {
	if l <= 1 {
		return 0
	}
	return math.Pow(2, float64(min(l, MaxLoad))/2)
}

// String is "unknown", "idle" or a rounded rate such as "64 KiB/s".
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
