package polling

import (
	"math"
	"time"

	"github.com/weir-go/weir/internal/jitter"
	"github.com/weir-go/weir/internal/mono"
)

// Kinesis allows five reads per second and 2 MiB per second for a shard, summed over all readers.
// It refuses reads that exceed a limit.
const (
	readSpacing   = 200 * time.Millisecond
	readBandwidth = 2 << 20
)

// spacing returns the minimum time from the beginning of a read to the next read. bytes is the size
// of the answer, and share is the reader's share of the shard.
func spacing(bytes int, share float64) time.Duration {
	whole := max(readSpacing, time.Duration(bytes)*time.Second/readBandwidth)
	return time.Duration(math.Ceil(float64(whole) / share))
}

// pace returns the time from the beginning of a read to the next read. At the tip of the shard this
// is at least pause. Otherwise it is the minimum that the limits allow.
func pace(bytes int, share float64, tip bool, pause time.Duration) time.Duration {
	if tip {
		return max(spacing(bytes, share), pause)
	}
	return spacing(bytes, share)
}

// later returns the later of due and at. A zero due counts as not set.
func later(due, at mono.Time) mono.Time {
	if due.IsZero() || at > due {
		return at
	}
	return due
}

// anyRoom is larger than any answer.
const anyRoom = math.MaxInt32

// answerRoom returns the maximum size of an answer in bytes. A reader with a share of a shard must
// leave capacity to other readers at any moment, not only on average. An answer of 10 MiB blocks
// all other readers for five seconds. So an answer contains at most what the share allows in one
// second, or between two reads if that takes longer.
func answerRoom(share float64) int {
	if share == 1 {
		return anyRoom
	}
	return int(share * readBandwidth * max(1, spacing(0, share).Seconds()))
}

// firstLimit returns the limit of records for the first read, when their size is unknown.
func firstLimit(share float64, most int32) int32 {
	if share == 1 {
		return most
	}
	return min(most, 4)
}

// tempo determines how often a shard is read at its tip. It depends on the last reads.
type tempo uint8

const (
	unsettled tempo = iota // the shard has not been at its tip yet
	bringing               // the last read returned records, so more may follow
	calm                   // the last read returned no records
	// Values above calm follow a throttled read, which shows that the shard has other readers. The
	// value decreases by one with each read. Until the value is calm again, the shard is not read
	// more often than with calm. While the value is at least wary, the shard is read less often
	// than with calm.
	wary    = calm + 240
	slowest = wary + 3*quarters
	// quarters is the number of reads after which the interval is normal again, if a throttled read
	// doubled it.
	quarters = 4
	// mostStretched is the maximum interval that throttled reads can cause. It is enough for 25
	// readers at the tip of a shard.
	mostStretched = 5 * time.Second
)

// after returns the tempo after a read.
func (t tempo) after(tip, records bool) tempo {
	switch {
	case t > calm:
		return t - 1
	case !tip:
		return t
	case records:
		return bringing
	}
	return calm
}

// throttled returns the tempo after a throttled read.
func (t tempo) throttled() tempo {
	// This reader is catching up and reads as much as it may. Other readers that started at the
	// same time will soon finish.
	if t == unsettled {
		return t
	}
	more := max(int(t)-int(wary)+1, 0)
	return tempo(min(int(wary)+quarters+2*more, int(slowest)))
}

// interval returns the time between two reads at the tip. It is idle, or half of idle while reads
// return records. One throttled read doubles it, and further ones extend it to up to four times
// idle. Each later read reduces it by a quarter of idle. The result is never less than the argument
// least. It is not extended beyond mostStretched.
func (t tempo) interval(idle, least time.Duration) time.Duration {
	switch d := max(idle, least); {
	case t == bringing:
		return max(idle/2, least)
	case t >= wary:
		return min(d+d/quarters*time.Duration(t-wary+1), max(d, mostStretched))
	default:
		return d
	}
}

// idlePause returns the pause before the next read of a shard at its tip. least is the minimum time
// between reads. A jitter of one tenth keeps shards from reading in sync. The first pause is random
// between least and idle, so that shards whose leases were taken together do not start in sync.
func idlePause(idle, least time.Duration, t tempo) time.Duration {
	if t == unsettled {
		return least + jitter.N(max(idle-least, 0)+1)
	}
	d := t.interval(idle, least)
	low, high := max(d-d/10, least), max(d, least+least/5)
	return low + jitter.N(high-low+1)
}

// slower returns a lower limit of records after an answer that was larger than the reader can take.
// The limit is the number of records of average size that fit into room.
func slower(limit int32, room, records, bytes int) int32 {
	if records == 0 || bytes == 0 {
		return max(limit/2, 1)
	}
	return max(min(fitting(room, records, bytes), limit-1), 1)
}

// faster returns a higher limit of records. It is used after an answer with as many records as
// requested, if the reader was waiting for that answer.
func faster(limit, most int32) int32 { return min(2*limit, most) }

// portion returns the limit of records after an answer that was read without an error. It raises
// the limit in steps until the answers fill room, and lowers it at once if an answer was larger
// than room.
func portion(limit, most int32, room, records, bytes int) int32 {
	switch {
	case bytes > room:
		return slower(limit, room, records, bytes)
	case records < int(limit) || bytes == 0:
		return limit
	case room == anyRoom:
		return faster(limit, most)
	}
	return max(min(4*limit, most, fitting(room, records, bytes)), 1)
}

// fitting returns the number of records of average size that fit into room. bytes must not be 0.
func fitting(room, records, bytes int) int32 {
	return int32(min(int64(room)*int64(records)/int64(bytes), math.MaxInt32))
}
