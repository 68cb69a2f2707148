package polling

import (
	"math"
	"time"

	"github.com/weir-go/weir/internal/jitter"
	"github.com/weir-go/weir/internal/mono"
)

// The service allows five reads a second and 2 MiB a second from a shard, to all who poll it
// together, and refuses further reads while that is overdrawn.
const (
	readSpacing   = 200 * time.Millisecond
	readBandwidth = 2 << 20
)

// spacing is how long after the beginning of a read that brought so many bytes the next one may
// begin, for who has such a share of the shard.
func spacing(bytes int, share float64) time.Duration {
	whole := max(readSpacing, time.Duration(bytes)*time.Second/readBandwidth)
	return time.Duration(math.Ceil(float64(whole) / share))
}

// pace is how long after the beginning of a read the next one is due: at once while there is more,
// within the limits; else after pause.
func pace(bytes int, share float64, tip bool, pause time.Duration) time.Duration {
	if tip {
		return max(spacing(bytes, share), pause)
	}
	return spacing(bytes, share)
}

// later is the later of when a read is due, if it is at all, and at.
func later(due, at mono.Time) mono.Time {
	if due.IsZero() || at > due {
		return at
	}
	return due
}

// anyRoom is more than any answer has.
const anyRoom = math.MaxInt32

// answerRoom is how many bytes an answer should have at most. Who has a share of a shard leaves the
// others theirs at any moment, and not only on average: an answer of 10 MiB shuts all of them out
// for five seconds, but answers of a second's worth each, of shares that are one together, nobody.
func answerRoom(share float64) int {
	if share == 1 {
		return anyRoom
	}
	return int(share * readBandwidth * max(1, spacing(0, share).Seconds()))
}

// firstLimit is the limit of records of who does not know yet how large they are.
func firstLimit(share float64, most int32) int32 {
	if share == 1 {
		return most
	}
	return min(most, 4)
}

// tempo is how often a shard is read at its tip, by what became of its last reads.
type tempo uint8

const (
	unsettled tempo = iota // it has not been at its tip
	bringing               // the last read brought something: more may follow
	calm                   // it brought nothing
	// Beyond, it is how many reads ago one was throttled, because others read the shard as well. It
	// is read no sooner than when it is calm until that is forgotten, and from wary on less often.
	wary    = calm + 240
	slowest = wary + 3*quarters
	// quarters is how many reads it takes to take back what one that was throttled has added to the
	// interval.
	quarters = 4
	// mostStretched is enough for 25 that read a shard at its tip.
	mostStretched = 5 * time.Second
)

// after is the tempo after a read.
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

// throttled is the tempo after a read that was.
func (t tempo) throttled() tempo {
	// it reads as much as it may, and who begins to do that at the same time is soon done
	if t == unsettled {
		return t
	}
	more := max(int(t)-int(wary)+1, 0)
	return tempo(min(int(wary)+quarters+2*more, int(slowest)))
}

// interval is the time between two reads at the tip: idle, but half of that while there is
// something; after a read that was throttled twice as much, and up to four times, of which each
// further read takes a quarter of idle back. It is not less than least, nor made more than
// mostStretched.
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

// idlePause is how long a shard at its tip is left alone, with reads at least so far apart. The
// jitter, of a fifth, keeps shards from staying in step; the first pause is anything that is
// allowed up to idle, all of it equally likely, so that shards that were taken together do not even
// begin so.
func idlePause(idle, least time.Duration, t tempo) time.Duration {
	if t == unsettled {
		return least + jitter.N(max(idle-least, 0)+1)
	}
	d := t.interval(idle, least)
	low, high := max(d-d/5, least), max(d, least+least/5)
	return low + jitter.N(high-low+1)
}

// slower is the limit of records after an answer whose records were too many for who takes them:
// what fits into room by their mean size.
func slower(limit int32, room, records, bytes int) int32 {
	if records == 0 || bytes == 0 {
		return max(limit/2, 1)
	}
	return max(min(fitting(room, records, bytes), limit-1), 1)
}

// faster is the limit after an answer that was as large as asked for and whose records were waited
// for.
func faster(limit, most int32) int32 { return min(2*limit, most) }

// portion is the limit after an answer that nobody kept from being larger: as many records as fit
// into room, which is found out step by step.
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

// fitting is how many records fit into room by their mean size; bytes is not 0.
func fitting(room, records, bytes int) int32 {
	return int32(min(int64(room)*int64(records)/int64(bytes), math.MaxInt32))
}
