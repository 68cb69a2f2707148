package observe

import (
	"fmt"
	"math"
	"strings"

	"github.com/weir-go/weir/lease"
)

// Throughput is what workers reported about the throughput of some shards. While a worker lives, it
// is the worker's average over about a minute, at most three minutes and a heartbeat ago. It is
// usually one heartbeat old for a shard whose checkpoint moves.
type Throughput struct {
	Bytes float64 // per second
	about bool    // for one of the shards, only the class is known
}

// ThroughputOf returns the throughput of a shard.
func ThroughputOf(l lease.Lease) Throughput {
	bytes, exact := l.Throughput()
	return Throughput{bytes, l.Load != 0 && !exact}
}

// Plus returns the throughput of the shards of t and of.
func (t Throughput) Plus(of Throughput) Throughput {
	return Throughput{t.Bytes + of.Bytes, t.about || of.about}
}

// String formats the throughput with two digits. The text begins with "~" if it is an estimate.
func (t Throughput) String() string {
	if text := twoDigits(t.Bytes); !t.about || text == idle {
		return text
	}
	return Rate(t.Bytes)
}

// Rate formats an estimate of a throughput.
func Rate(bytes float64) string {
	text := twoDigits(bytes)
	if text == idle {
		return idle
	}
	return "~" + text
}

// Amount formats an estimate of a number of bytes.
func Amount(bytes float64) string { return strings.TrimSuffix(twoDigits(max(bytes, 1)), "/s") }

const idle = "idle"

func twoDigits(bytes float64) string {
	unit := 0
	units := []string{"B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s"}
	for bytes >= 1000 && unit < len(units)-1 {
		bytes /= 1024
		unit++
	}
	switch {
	case !(bytes >= 1) && unit == 0:
		return idle
	case bytes < 9.95:
		return fmt.Sprintf("%.1f %s", bytes, units[unit])
	case bytes < 99.5:
		return fmt.Sprintf("%.0f %s", bytes, units[unit])
	}
	return fmt.Sprintf("%.0f %s", math.Round(bytes/10)*10, units[unit])
}

// NoRate is the text for the throughput of a shard that no living worker holds, or of a worker
// without shards.
const NoRate = "–"
