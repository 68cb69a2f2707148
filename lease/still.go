package lease

import (
	"maps"
	"time"
)

// still measures how long a value has not changed.
type still[T comparable] struct {
	value T
	time  time.Duration
	told  bool // for revocations only: the old owner can know of it
	seen  uint64
}

// track adds step to the time for which the value of key has not changed. If value is a new value,
// the time starts again at zero.
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

// stillness measures how long the heartbeat count of each session has not changed, over consecutive
// successful reads. Leaders and their followers use the same method.
//
// A leader ends a session on the condition that its count is still the same. This is safe as long
// as the measured time is not longer than the real time. The measured time is the sum of the steps
// between reads, and not the time since the first read of the count. The reason is outages of the
// store. During an outage no session can send heartbeats, and afterwards no session may count as
// dead for that reason.
type stillness struct {
	last     time.Time // the end of the last successful read; zero after a failure
	sessions map[string]*still[uint64]
}

func newStillness() stillness { return stillness{sessions: map[string]*still[uint64]{}} }

// missed notes that a read failed. The time around it does not count for any session.
func (s *stillness) missed() { s.last = time.Time{} }

// step returns the time to add for a read from began to ended. This is the time from the end of the
// previous read to the beginning of this one. A value that is the same in both reads did not change
// in that time. A paused process could not observe anything, so a step is at most one heartbeat
// interval.
func (s *stillness) step(began, ended time.Time, beat time.Duration) (d time.Duration) {
	if !s.last.IsZero() {
		d = min(max(began.Sub(s.last), 0), beat)
	}
	s.last = ended
	return d
}

// see notes the count of a session and returns how long it has not changed.
func (s *stillness) see(session string, beat uint64, step time.Duration) time.Duration {
	return track(s.sessions, session, beat, step).time
}

// next returns the minimum time until one of the counts has not changed for the failover time. The
// result is at most bound.
func (s *stillness) next(failover, bound time.Duration) time.Duration {
	for _, one := range s.sessions {
		bound = min(bound, max(failover-one.time, 0))
	}
	return bound
}

// clone returns a copy that shares nothing with s.
func (s *stillness) clone() stillness {
	c := stillness{s.last, maps.Clone(s.sessions)}
	for session, one := range c.sessions {
		own := *one
		c.sessions[session] = &own
	}
	return c
}
