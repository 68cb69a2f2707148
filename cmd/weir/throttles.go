package main

import (
	"errors"
	"sync"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/fanout"
)

// throttles tells a person that reads are throttled: not of a few, which happen, for instance when
// a shard changes hands.
type throttles struct {
	mu    sync.Mutex
	since time.Time
	n     int
}

const (
	throttledFor  = time.Minute
	manyThrottled = 10
)

// count is add for a read that failed. That a subscription waits for the one before it is no
// throttling: that ends soon.
func (c *throttles) count(e weir.ReadFailed, now time.Time) bool {
	return e.Throttled && !errors.Is(e.Err, fanout.ErrSubscribed) && c.add(now)
}

// add counts a read that was throttled. It reports whether there are many, once a minute.
func (c *throttles) add(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.since) >= throttledFor {
		c.since, c.n = now, 0
	}
	c.n++
	return c.n == manyThrottled
}
