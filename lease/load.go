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

// MaxRate is the highest rate that a store accepts, in bytes per second.
const MaxRate = 1 << 40

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

// Measured returns a throughput as the Rate and the Load of a [Progress]. Fractions are dropped.
func Measured(bytesPerSecond float64) (rate uint64, load Load) {
	if bytesPerSecond >= 1 {
		rate = uint64(min(bytesPerSecond, MaxRate))
	}
	return rate, LoadOf(float64(rate))
}

// Throughput returns the throughput in bytes per second that the last owner reported. It returns 0
// if it is unknown or idle. exact is false if only the class is known, which is then within a
// factor of 1.2: the owner or the store has an older version.
func (l *Lease) Throughput() (bytesPerSecond float64, exact bool) {
	if l.Load != 0 && LoadOf(float64(l.Rate)) == l.Load {
		return float64(l.Rate), true
	}
	return l.Load.Bytes(), false
}

// String returns "unknown", "idle" or an approximate rate such as "about 64 KiB/s".
func (l Load) String() string {
	b, unit := l.Bytes(), 0
	units := [...]string{"B/s", "KiB/s", "MiB/s", "GiB/s"}
	for b >= 1000 && unit < len(units)-1 {
		b, unit = b/1024, unit+1
	}
	switch {
	case l == 0:
		return "unknown"
	case l == 1:
		return "idle"
	case b < 9.95:
		return fmt.Sprintf("about %.1f %s", b, units[unit])
	case b < 99.5:
		return fmt.Sprintf("about %.0f %s", b, units[unit])
	default:
		return fmt.Sprintf("about %.0f %s", math.Round(b/10)*10, units[unit])
	}
}
