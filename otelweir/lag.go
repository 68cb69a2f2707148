package otelweir

import (
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/health"
)

// unknown is a lag that cannot be told.
const unknown = health.Unknown

// lags are how far a shard is behind.
type lags struct {
	read, handled, saved time.Duration
}

// look says how far a shard is behind, and keeps in at since when reading is silent.
func (at *place) look(s weir.ShardStatus, now time.Time) lags {
	at.silent = silentSince(s, at.silent, now)
	if s.Attempt == 0 {
		at.failing = time.Time{}
	}
	return lagsOf(s, at.silent, at.oldest(), at.unsaved(), now)
}

// judge says how a shard stands, by package health, from what was observed of it until now.
func (at *place) judge(s weir.ShardStatus, l lags, worker string, now time.Time) health.State {
	o := health.Observation{
		At: now, Handled: s.At, Saved: at.durable, ReadLag: l.read, HandledLag: l.handled, SavedLag: l.saved,
		Owner: worker, Stage: string(s.State), Since: s.Since, Attempts: s.Attempt,
	}
	if s.Err != nil {
		o.Err = s.Err.Error()
	}
	bounds := health.Options{}.Defaults()
	at.seen.Add(o, bounds.Window)
	return health.Evaluate(at.seen.All(), now, bounds).State
}

// silentSince is since when nothing was read of a shard whose status is s; zero when answers come.
// before is what it was when the status was asked for the last time.
func silentSince(s weir.ShardStatus, before, now time.Time) time.Time {
	switch s.Reading {
	case weir.ShardBackingOff, weir.ShardAwaitingHandler, weir.ShardAwaitingMemory, weir.ShardPositioning, weir.ShardSubscribing, weir.ShardStarting:
	default:
		if before.IsZero() || s.Attempt == 0 {
			return time.Time{}
		}
	}
	if !before.IsZero() {
		return before
	}
	if s.ReadingSince.IsZero() {
		return now
	}
	return s.ReadingSince
}

// lagsOf says how far a shard is behind. The service says so with an answer; what was said grows
// while no answers come. oldest is when the oldest record arrived that the handler is at, unsaved
// that of the oldest whose progress is not saved; zero when there is none.
func lagsOf(s weir.ShardStatus, silent, oldest, unsaved, now time.Time) lags {
	l := lags{unknown, unknown, unknown}
	if s.Behind >= 0 {
		l.read = s.Behind
		if !silent.IsZero() {
			l.read += max(0, now.Sub(silent))
		}
	}
	handling := s.State != s.Reading
	switch {
	case !oldest.IsZero():
		l.handled = max(0, now.Sub(oldest), l.read)
	case l.read == unknown:
	case handling:
		l.handled = l.read + max(0, now.Sub(s.Since))
	default:
		l.handled = l.read
	}
	l.saved = l.handled
	if !unsaved.IsZero() {
		l.saved = max(l.saved, now.Sub(unsaved), 0)
	}
	return l
}

// worst is the larger of each lag.
func (l lags) worst(o lags) lags {
	return lags{max(l.read, o.read), max(l.handled, o.handled), max(l.saved, o.saved)}
}
