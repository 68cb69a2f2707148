package main

import (
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// readShare is --read-share: this application's share of what a shard gives to all who poll it.
type readShare float64

func (s *readShare) register(cmd *cobra.Command) {
	cmd.Flags().Float64Var((*float64)(s), "read-share", 1, "part of each shard's 5 reads and 2 MiB a second to take at most, 0.01 to 1; the rest is for others that poll the stream")
}

// check returns what is wrong with a share that means something else to weir; weir checks the rest.
func (s readShare) check() error {
	if s == 0 {
		return usagef("--read-share 0: want 0.01 to 1")
	}
	return nil
}

// throttles tells a person that reads are throttled: not of a few, which happen, for instance when a shard changes hands.
type throttles struct {
	mu    sync.Mutex
	since time.Time
	n     int
}

const (
	throttledFor  = time.Minute
	manyThrottled = 10
)

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
