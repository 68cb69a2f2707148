package supervise

import (
	"math"
	"time"

	"github.com/weir-go/weir/internal/mono"
)

// loadSpan is the time over which a shard's load is averaged.
const loadSpan = time.Minute

// Rate is an average of bytes per second in which older values count less and less. It is small,
// because each shard has one.
type Rate struct {
	value float64
	at    mono.Time
}

// RateOf returns a rate with the given current value in bytes per second.
func RateOf(value float64, now time.Time) Rate { return Rate{value, mono.Of(now)} }

// Add adds bytes that were handled until now.
func (r *Rate) Add(bytes int, now time.Time) {
	if mono.Of(now).Sub(r.at) < time.Millisecond && !r.at.IsZero() { // too soon to decay
		r.value += float64(bytes) / loadSpan.Seconds()
		return
	}
	*r = Rate{r.Now(now) + float64(bytes)/loadSpan.Seconds(), mono.Of(now)}
}

// Now returns the bytes per second at the given time.
func (r Rate) Now(now time.Time) float64 {
	if r.at.IsZero() {
		return r.value
	}
	return r.value * math.Exp(-max(mono.Of(now).Sub(r.at), 0).Seconds()/loadSpan.Seconds())
}
