package promweir

import (
	"time"

	"github.com/weir-go/weir"
)

// lags are how far a shard is behind the tip of the stream. Negative ones are not known.
type lags struct{ read, handled, saved time.Duration }

// lagsOf tells how far a shard is behind, and p, which may be nil, up to where it is done. Each lag
// goes on growing while nothing gets on.
func lagsOf(s weir.ShardStatus, p *progress, now time.Time) lags {
	none := lags{-1, -1, -1}
	if s.Behind < 0 && (p == nil || p.firstRead.IsZero()) {
		return none
	}
	var l lags
	l.read = max(s.Behind, 0)
	if waits(s) && !s.ReadingSince.IsZero() {
		l.read += max(now.Sub(s.ReadingSince), 0)
	}
	l.handled = l.read
	if s.Buffered > 0 || handles(s.State) {
		l.handled = max(l.read, since(now, p, func(p *progress) time.Time {
			if p.handledTo.After(p.firstRead) {
				return p.handledTo
			}
			return p.firstRead
		}))
	}
	l.saved = l.handled
	if p != nil && !p.savedAt.IsZero() && p.savedAt.Compare(s.At) < 0 {
		l.saved = max(l.handled, since(now, p, func(p *progress) time.Time { return p.savedTo }))
	}
	return l
}

// since is how long ago a time of p was, 0 when it is not known.
func since(now time.Time, p *progress, of func(*progress) time.Time) time.Duration {
	if p == nil || of(p).IsZero() {
		return 0
	}
	return max(now.Sub(of(p)), 0)
}

// waits reports whether reading does not get on.
func waits(s weir.ShardStatus) bool {
	switch s.Reading {
	case weir.ShardAwaitingHandler, weir.ShardAwaitingMemory, weir.ShardBackingOff, weir.ShardPositioning, weir.ShardSubscribing:
		return true
	case weir.ShardReading:
		return s.Attempt > 0
	}
	return false
}

// handles reports whether records are with the handler, or wait for it, in a state of a shard.
func handles(state weir.ShardState) bool {
	switch state {
	case weir.ShardGathering, weir.ShardHandling, weir.ShardRetrying, weir.ShardGivingUp, weir.ShardSuspected, weir.ShardOpening, weir.ShardBlocked:
		return true
	}
	return false
}
