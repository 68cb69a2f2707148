package polling

import (
	"math"
	"time"

	"github.com/weir-go/weir/internal/jitter"
	"github.com/weir-go/weir/internal/mono"
)

// The service allows five reads per second and 2 MiB per second from a shard, for all its readers
// together, and refuses reads while a limit is exceeded.
const (
	readSpacing   = 200 * time.Millisecond
	readBandwidth = 2 << 20
)

// spacing returns the minimum time between the beginning of a read that brought this many bytes and
// the next read, for a reader with this share of the shard.
func spacing(bytes int, share float64) time.Duration {
	whole := max(readSpacing, time.Duration(bytes)*time.Second/readBandwidth)
	return time.Duration(math.Ceil(float64(whole) / share))
}

// pace returns the time between the beginning of a read and the next read. While there is more it
// is the minimum within the limits, otherwise pause.
func pace(bytes int, share float64, tip bool, pause time.Duration) time.Duration {
	if tip {
		return max(spacing(bytes, share), pause)
	}
	return spacing(bytes, share)
}

// later returns the later of due, if set, and at.
func later(due, at mono.Time) mono.Time {
	if due.IsZero() || at > due {
		return at
	}
	return due
}

// anyRoom is larger than any answer.
const anyRoom = math.MaxInt32

// answerRoom returns the maximum size of an answer in bytes. A reader with a share of a shard must
// leave the others their share at any moment, and not only on average. An answer of 10 MiB shuts
// out all others for five seconds. Answers of one second's worth of each share do not.
func answerRoom(share float64) int {
	if share == 1 {
		return anyRoom
	}
	return int(share * readBandwidth * max(1, spacing(0, share).Seconds()))
}

// firstLimit returns the limit of records while their size is unknown.
func firstLimit(share float64, most int32) int32 {
	if share == 1 {
		return most
	}
	return min(most, 4)
}

// tempo determines how often a shard is read at its tip. It depends on its last reads.
type tempo uint8

const (
	unsettled tempo = iota // it was not at its tip yet
	bringing               // the last read brought records: more may follow
	calm                   // the last read brought nothing
	// A value above calm counts the reads since one was throttled because of other readers of the
	// shard. Until that is forgotten, the shard is read no more often than when it is calm, and
	// from wary on less often.
	wary    = calm + 240
	slowest = wary + 3*quarters
	// quarters is the number of reads after which the longer interval due to a throttled read is
	// back to normal.
	quarters = 4
	// mostStretched is enough for 25 readers at the tip of a shard.
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
	// it reads as much as it may, and other readers that start at the same time soon finish
	if t == unsettled {
		return t
	}
	more := max(int(t)-int(wary)+1, 0)
	return tempo(min(int(wary)+quarters+2*more, int(slowest)))
}

// interval returns the time between two reads at the tip. It is idle, or half of that while reads
// bring records. A throttled read doubles it, and further ones extend it up to four times idle.
// Each later read reduces it by a quarter of idle. It is never less than least, and never extended
// beyond mostStretched.
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

// idlePause returns how long a shard at its tip is not read. least is the minimum distance of
// reads. A jitter of a fifth keeps shards from falling into step. The first pause is uniformly
// distributed from the minimum to idle, so that shards that were taken together do not start in
// step.
func idlePause(idle, least time.Duration, t tempo) time.Duration {
	if t == unsettled {
		return least + jitter.N(max(idle-least, 0)+1)
	}
	d := t.interval(idle, least)
	low, high := max(d-d/5, least), max(d, least+least/5)
	return low + jitter.N(high-low+1)
}

// slower returns the limit of records after an answer whose records were more than the reader
// takes. It is the number that fits into room at their mean size.
func slower(limit int32, room, records, bytes int) int32 {
	if records == 0 || bytes == 0 {
		return max(limit/2, 1)
	}
	return max(min(fitting(room, records, bytes), limit-1), 1)
}

// faster returns the limit after an answer that was as large as requested while its reader was
// waiting.
func faster(limit, most int32) int32 { return min(2*limit, most) }

// portion returns the limit after an answer that nothing else limited. It approaches, step by step,
// the number of records that fit into room.
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

// fitting returns how many records fit into room at their mean size. bytes must not be 0.
func fitting(room, records, bytes int) int32 {
	return int32(min(int64(room)*int64(records)/int64(bytes), math.MaxInt32))
}
