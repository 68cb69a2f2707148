package source

import (
	"time"

	"github.com/weir-go/weir/internal/jitter"
)

// The service allows five reads a second and 2 MiB a second from a shard, and refuses further reads while that is overdrawn.
const (
	readSpacing   = 200 * time.Millisecond
	readBandwidth = 2 << 20
)

// spacing is how long after the beginning of a read that brought so many bytes the next one may begin.
func spacing(bytes int) time.Duration {
	return max(readSpacing, time.Duration(bytes)*time.Second/readBandwidth)
}

// idlePause is how long a shard at its tip is left alone. The jitter, of a fifth, keeps shards from staying in step; the first pause is
// anything that is allowed up to idle, all of it equally likely, so that shards that were taken together do not even begin so.
func idlePause(idle time.Duration, first bool) time.Duration {
	if first {
		return readSpacing + jitter.N(max(idle-readSpacing, 0)+1)
	}
	return idle - jitter.N(idle/5+1)
}

// pace is how long after the beginning of a read the next one is due: at once while there is more, within the limits; else after pause.
func pace(bytes int, tip bool, pause time.Duration) time.Duration {
	if tip {
		return max(spacing(bytes), pause)
	}
	return spacing(bytes)
}

// slower is the limit of records after an answer whose records were too many for who takes them: what fits into room by their mean size.
func slower(limit int32, room, records, bytes int) int32 {
	if records == 0 || bytes == 0 {
		return max(limit/2, 1)
	}
	fits := int64(room) * int64(records) / int64(bytes)
	return int32(max(min(fits, int64(limit-1)), 1))
}

// faster is the limit after an answer that was as large as asked for and whose records were waited for.
func faster(limit, most int32) int32 { return min(2*limit, most) }
