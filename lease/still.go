package lease

import (
	"maps"
	"time"
)

// still is how long something has been seen unchanged.
type still[T comparable] struct {
	value T
	time  time.Duration
	told  bool // only for revocations: the old owner can have learned of it
	seen  uint64
}

// track adds step to how long value has stood for key, or starts again when it changed.
func track[K comparable, T comparable](m map[K]*still[T], key K, value T, step time.Duration) *still[T] {
	known := m[key]
	switch {
	case known == nil:
		known = &still[T]{value: value}
		m[key] = known
	case known.value != value:
		*known = still[T]{value: value}
	default:
		known.time += step
	}
	return known
}

// stillness is for how long the beat count of each session has been seen to stand still, in reads
// that succeeded one after the other. Leaders and those that follow one count in the same way.
//
// A count that is ended on is always compared with the present one, so only when it was first seen
// has to be right for nobody to be ended who may be trusted. That time is counted in steps, and not
// from that moment on, is for an outage of the store: nobody can beat then, and nobody is to be
// taken for dead afterwards.
type stillness struct {
	last     time.Time // the end of the last successful read; zero after a failure
	sessions map[string]*still[uint64]
}

func newStillness() stillness { return stillness{sessions: map[string]*still[uint64]{}} }

// missed notes that a read failed. The time around it proves nothing about anybody.
func (s *stillness) missed() { s.last = time.Time{} }

// step is what the next read adds, which began and had ended then: the time from the end of one
// read to the beginning of the next, since what both saw did not change in between. Who was paused
// saw nothing, so it counts for a beat at most.
func (s *stillness) step(began, ended time.Time, beat time.Duration) (d time.Duration) {
	if !s.last.IsZero() {
		d = min(max(began.Sub(s.last), 0), beat)
	}
	s.last = ended
	return d
}

// see takes in the count of a session and returns for how long it has stood.
func (s *stillness) see(session string, beat uint64, step time.Duration) time.Duration {
	return track(s.sessions, session, beat, step).time
}

// next is how long nothing has to move until one of the counts has stood for the failover time, at
// most the given bound.
func (s *stillness) next(failover, bound time.Duration) time.Duration {
	for _, one := range s.sessions {
		bound = min(bound, max(failover-one.time, 0))
	}
	return bound
}

// clone is a copy that shares nothing.
func (s *stillness) clone() stillness {
	c := stillness{s.last, maps.Clone(s.sessions)}
	for session, one := range c.sessions {
		own := *one
		c.sessions[session] = &own
	}
	return c
}
