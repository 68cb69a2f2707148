package keyed

import (
	"sync/atomic"

	"github.com/weir-go/weir/internal/lock"
)

// Slots limit the number of concurrent calls of a worker. Each shard has one additional slot for
// its oldest record.
type Slots struct {
	mu      lock.Mutex[lock.Slots] // guards the fields below, and Runner.queued
	free    int
	waiting []*Runner // shards that waited for a slot with something to handle, each once
	waits   atomic.Int32
}

// NewSlots returns Slots with the given number of free slots.
func NewSlots(free int) *Slots { return &Slots{free: free} }

// take takes a slot for a call of r if one is free. Otherwise the Slots call r.pump when a slot is
// free.
func (s *Slots) take(r *Runner) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free > 0 {
		s.free--
		return true
	}
	if !r.queued {
		r.queued = true
		s.waiting = append(s.waiting, r)
		s.waits.Add(1)
	}
	return false
}

// contended reports whether at least one shard waits for a slot.
func (s *Slots) contended() bool { return s.waits.Load() > 0 }

// give releases a slot and offers it to waiting runners. The caller must not hold the mutex of a
// runner.
func (s *Slots) give() {
	s.mu.Lock()
	s.free++
	s.mu.Unlock()
	for next := s.next(); next != nil; next = s.next() {
		next.pump()
	}
}

// next returns the runner that has waited longest, if a slot is free.
func (s *Slots) next() *Runner {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == 0 || len(s.waiting) == 0 {
		return nil
	}
	r := s.waiting[0]
	s.waiting[0] = nil
	s.waiting = s.waiting[1:]
	s.waits.Add(-1)
	r.queued = false
	return r
}
