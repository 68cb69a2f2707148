package lease

import (
	"maps"
	"time"
)

// still measures how long a value has been unchanged.
type still[T comparable] struct {
	value T
	time  time.Duration
	told  bool // for revocations only: the old owner can know of it
	seen  uint64
}

// track adds step to the time for which value has stood for key. It starts again if the value
// changed.
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

// stillness measures how long the heartbeat count of each session has stood still, over consecutive
// successful reads. Leaders and their followers count in the same way.
//
// Ending a session is conditional on its present count. It is safe as long as the measured time is
// not longer than the real one. The time is added up in steps between reads, and not counted from
// the moment when the count was first seen. The reason is outages of the store: during an outage no
// session can beat, and no session may count as dead after it.
type stillness struct {
	last     time.Time // the end of the last successful read; zero after a failure
	sessions map[string]*still[uint64]
}

func newStillness() stillness { return stillness{sessions: map[string]*still[uint64]{}} }

// missed records that a read failed. The time around it says nothing about any session.
func (s *stillness) missed() { s.last = time.Time{} }

// step returns the time to add for a read from began to ended. It is the time from the end of the
// previous read to the beginning of this one, because a value that both saw did not change in
// between. A process that was paused saw nothing, so a step counts for one heartbeat interval at
// most.
func (s *stillness) step(began, ended time.Time, beat time.Duration) (d time.Duration) {
	if !s.last.IsZero() {
		d = min(max(began.Sub(s.last), 0), beat)
	}
	s.last = ended
	return d
}

// see records the count of a session and returns for how long it has stood still.
func (s *stillness) see(session string, beat uint64, step time.Duration) time.Duration {
	return track(s.sessions, session, beat, step).time
}

// next returns how long it takes at least until one of the counts has stood still for the failover
// time, at most bound.
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
