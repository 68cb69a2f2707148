package weir

import (
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/lease"
)

// How what is handled side by side stands, for those who look at the shard.

// entered notes what is done with a delivery. It is called without the lock.
func (s *dispatcher) entered(b *keyDelivery, state ShardState, attempt int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.lane == nil {
		return
	}
	if b.state != state {
		b.state, b.since = state, mono.Now()
	}
	switch {
	case err == nil:
		b.failing = 0
	case b.failing.IsZero():
		b.failing = mono.Now()
	}
	b.attempt, b.err = attempt, err
}

// fails notes at what a delivery fails. It is called without the lock.
func (s *dispatcher) fails(b *keyDelivery, at lease.Failing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.at = at
}

// dispatchLook is how a dispatcher stands, for those who look at the shard.
type dispatchLook struct {
	keys, works int
	records     int
	state       ShardState // of the call that has been going on longest; or retrying, or empty
	since       mono.Time
	attempt     int // calls that failed at the oldest record
	err         error
	failing     mono.Time
	at          lease.Failing // at what it fails, if it does
}

// look is called without the lock.
func (s *dispatcher) look() (k dispatchLook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k.keys, k.works = s.span.Lanes()
	k.records = s.span.Len()
	_, lane, _ := s.span.Oldest()
	if lane == nil {
		return k
	}
	of, _ := lane.Of.(*keyDelivery)
	if of != nil {
		k.attempt, k.err, k.failing, k.at = of.attempt, of.err, of.failing, of.at
	}
	var longest *keyDelivery
	for _, b := range s.all {
		if b.works && (longest == nil || b.began < longest.began) {
			longest = b
		}
	}
	switch {
	case longest != nil:
		k.state, k.since = longest.state, longest.since
	case of != nil:
		k.state, k.since = of.state, of.since
	}
	return k
}
