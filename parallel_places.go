package weir

import (
	"sync/atomic"

	"github.com/weir-go/weir/internal/lock"
)

// calls are the places of a worker for calls of the handler, beside those for the oldest record of
// each shard, with Options.Parallel.
type places struct {
	mu      lock.Mutex[lock.Slots]
	free    int
	waiting []*dispatcher // shards that had something to handle when no place was free, each once
	waits   atomic.Int32
}

// take takes a place for a call of s, if one is free. Else s is asked to pump when one is.
func (c *places) take(s *dispatcher) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.free > 0 {
		c.free--
		return true
	}
	if !s.waits {
		s.waits = true
		c.waiting = append(c.waiting, s)
		c.waits.Add(1)
	}
	return false
}

// contended reports whether a shard waits for a place.
func (c *places) contended() bool { return c.waits.Load() > 0 }

// give gives a place back, to those who wait for one. No dispatcher may be locked.
func (c *places) give() {
	c.mu.Lock()
	c.free++
	c.mu.Unlock()
	for next := c.next(); next != nil; next = c.next() {
		next.pump()
	}
}

// next is who has waited longest, if a place is free.
func (c *places) next() *dispatcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.free == 0 || len(c.waiting) == 0 {
		return nil
	}
	s := c.waiting[0]
	c.waiting[0] = nil
	c.waiting = c.waiting[1:]
	c.waits.Add(-1)
	s.waits = false
	return s
}
