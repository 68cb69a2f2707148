package history

import (
	"math"
	"strings"
	"time"

	"github.com/weir-go/weir/lease"
)

// Sample describes a shard in one minute. Durations are accurate to 5%.
type Sample struct {
	lease.Key
	Minute int64 // counted from 1970
	// Lag is the age of the oldest record that was not handled. It is 0 if all were handled, and
	// negative if unknown.
	Lag time.Duration
	// Age is the age of the record before the shard's position. It is negative if unknown.
	Age time.Duration
	// Load is the throughput of the shard.
	Load lease.Load
	// Busy is the percentage of the heartbeat loop's looks at which the handler was running.
	Busy int
	// Throttled is the percentage of the minute in which reading waited because of throttling,
	// rounded up to an even number.
	Throttled int
	Marks     Marks
}

// Marks is a set of events of a shard in one minute.
type Marks uint8

// The marks.
const (
	Began    Marks = 1 << iota // a worker got the shard
	Ended                      // the owner released the shard in an orderly way
	Lost                       // the owner lost the shard
	Finished                   // the shard was read to its end
	Stalled                    // the shard made no progress, or its handler hung
	Failing                    // its handler failed
	Unread                     // reading it failed for another reason than throttling
)

// These are the bits of a mask.
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

// Like the marks Failing and Unread, throttling may last for many samples. It shares a byte with
// these two marks, so a throttled sample with these marks needs no second byte.
const (
	lasting       = Failing | Unread
	lastingAt     = 5 // the lowest bit of these marks
	lastingBits   = 2
	throttledStep = 2 // in percent
)

// throttledByte returns the byte of a throttled sample.
func throttledByte(s *Sample) byte {
	steps := (min(s.Throttled, 100) + throttledStep - 1) / throttledStep
	return byte(steps)<<lastingBits | byte(s.Marks&lasting>>lastingAt)
}

// setThrottled sets the fields of a sample from the result of throttledByte. It accepts any byte.
func (s *Sample) setThrottled(b byte) {
	s.Throttled = min(throttledStep*int(b>>lastingBits), 100)
	s.Marks |= Marks(b) << lastingAt & lasting
}

// values are the bytes of a sample that are compared with the previous sample.
type values [4]byte

func valuesOf(s Sample) values {
	return values{classOf(s.Lag), classOf(s.Age), byte(min(s.Load, lease.MaxLoad)), byte(min(max(s.Busy, 0), 100))}
}

// finest is the smallest stored duration. Shorter ones are stored as zero.
const finest = 10 * time.Millisecond

// classOf encodes a duration as a byte. 0 means unknown, and 1 means zero. Above that, there are
// eight classes for each doubling, up to a year.
func classOf(d time.Duration) byte {
	switch {
	case d < 0:
		return 0
	case d < finest:
		return 1
	}
	return byte(min(2+math.Round(8*math.Log2(float64(d)/float64(finest))), 255))
}

// durationOf returns the duration of a class.
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

// numberOf returns the number in an ID like shardId-000000000007.
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
