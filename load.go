package weir

import (
	"math"
	"time"

	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/lease"
)

// loadSpan is over how long a shard's load is averaged.
const loadSpan = time.Minute

// rate is an average of bytes per second in which what is older counts less and less.
type rate struct {
	value float64
	at    mono.Time
}

// add takes in bytes that were handled until now.
func (r *rate) add(bytes int, now time.Time) {
	*r = rate{r.now(now) + float64(bytes)/loadSpan.Seconds(), mono.Of(now)}
}

func (r rate) now(now time.Time) float64 {
	if r.at.IsZero() {
		return r.value
	}
	return r.value * math.Exp(-max(mono.Of(now).Sub(r.at), 0).Seconds()/loadSpan.Seconds())
}

// noteHandled notes that something was handled, or that there was nothing.
func (l *shardLoop) noteHandled(bytes int) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.well = true
	if bytes > 0 {
		l.rate.add(bytes, now)
	}
}

// load is what the shard brings.
func (l *shardLoop) load(now time.Time) lease.Load {
	l.mu.Lock()
	defer l.mu.Unlock()
	return lease.LoadOf(l.rate.now(now))
}
