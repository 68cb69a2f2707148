package history

import (
	"math"
	"strings"
	"time"

	"github.com/weir-go/weir/lease"
)

// Sample is how a shard stood in a minute. Durations are kept to within 5 %.
type Sample struct {
	lease.Key
	Minute int64 // since the beginning of 1970
	// Lag is the age of the oldest record that was not handled, 0 when all were; negative when it
	// was not known.
	Lag time.Duration
	// Age is how old the record was that the shard's position is after; negative when it was not
	// known.
	Age time.Duration
	// Load is the throughput of the shard.
	Load lease.Load
	// Busy is in how many of a hundred looks the handler was at work.
	Busy int
	// Throttled is for how many hundredths of the minute reading waited because the service had
	// throttled it, rounded up to an even number.
	Throttled int
	Marks     Marks
}

// Marks are the events of a shard in a minute, as a set.
type Marks uint8

// The marks.
const (
	Began    Marks = 1 << iota // its owner got it
	Ended                      // its owner gave it back in an orderly way
	Lost                       // the worker lost the shard
	Finished                   // it was read to its end
	Stalled                    // it made no progress, or its handler hung
	Failing                    // its handler failed
	Unread                     // reading it failed, and not because it was throttled
)

// The bits of a mask.
const (
	hasLag byte = 1 << iota
	hasAge
	hasLoad
	hasBusy
	hasMarks
	hasThrottled
	held byte = 1 << 7

	announced = hasLag | hasAge | hasLoad | hasBusy | hasMarks | hasThrottled | held
)

// Throttling shares a byte with the marks that may last as long, so that a throttled sample has no
// more bytes than another, however long the throttling lasts.
const (
	lasting       = Failing | Unread
	lastingAt     = 5 // the lowest of their bits
	lastingBits   = 2
	throttledStep = 2 // of hundredths
)

// throttledByte is the byte of a sample that is throttled.
func throttledByte(s *Sample) byte {
	steps := (min(s.Throttled, 100) + throttledStep - 1) / throttledStep
	return byte(steps)<<lastingBits | byte(s.Marks&lasting>>lastingAt)
}

// setThrottled takes in such a byte, which may be anything.
func (s *Sample) setThrottled(b byte) {
	s.Throttled = min(throttledStep*int(b>>lastingBits), 100)
	s.Marks |= Marks(b) << lastingAt & lasting
}

// values are the bytes of a sample that are compared with the one before.
type values [4]byte

func valuesOf(s Sample) values {
	return values{classOf(s.Lag), classOf(s.Age), byte(min(s.Load, lease.MaxLoad)), byte(min(max(s.Busy, 0), 100))}
}

// finest is the smallest difference between durations that is kept.
const finest = 10 * time.Millisecond

// classOf puts a duration into a byte: 0 when it is not known, 1 for none, then eight classes for
// each doubling, up to a year.
func classOf(d time.Duration) byte {
	switch {
	case d < 0:
		return 0
	case d < finest:
		return 1
	}
	return byte(min(2+math.Round(8*math.Log2(float64(d)/float64(finest))), 255))
}

// durationOf is the duration that a class stands for.
func durationOf(class byte) time.Duration {
	switch class {
	case 0:
		return -1
	case 1:
		return 0
	}
	return time.Duration(float64(finest) * math.Pow(2, float64(class-2)/8)).Round(time.Microsecond)
}

const (
	numbered = "shardId-"
	digits   = 12
)

// numberOf is the number of an ID like shardId-000000000007.
func numberOf(id string) (n uint64, ok bool) {
	rest, ok := strings.CutPrefix(id, numbered)
	if !ok || len(rest) != digits {
		return 0, false
	}
	for _, c := range []byte(rest) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + uint64(c-'0')
	}
	return n, true
}
