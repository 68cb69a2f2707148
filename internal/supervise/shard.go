// Package supervise rates shards, workers and their reading from a snapshot, and decides what to do
// about problems. It takes no snapshots and executes no actions: the run does both.
package supervise

import (
	"slices"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/errtext"
	"github.com/weir-go/weir/lease"
)

// Shard is a snapshot of a shard that is held. Times are zero if the event has not happened.
type Shard struct {
	Handling health.Reason // state of handling; NoReason if there is nothing to handle
	Since    time.Time     // when the state Handling began
	Failing  time.Time     // the first of the handler's consecutive failures
	Err      error         // error of the handler, or else of reading
	Stalls   int           // consecutive earlier terms of the shard that stalled in this process
	Ended    time.Time     // when the end of the term's context was noticed
	Left     bool          // its handler was abandoned
	ToldSlow bool          // the slow handler was already logged
	Parallel bool          // reading continues during Handling, which describes one of several calls

	Reading   health.Reason // state of reading
	Trying    time.Time     // since when reading has tried to get the next page
	ReadErr   error         // error of the last failed read
	Throttled bool          // reads fail because they are too frequent
	Missing   bool          // reading fails because the stream does not exist
	ForAll    bool          // the last read failed with an error that every worker would get
	ToldFails bool          // the failing reads were already logged

	Lacks      error     // why reading waits for memory; nil if it does not
	LacksSince time.Time // when the wait for memory began

	FailingAt lease.Failing // where the handler fails; empty if that is unknown
}

// Limits contains time limits from the options.
type Limits struct {
	Stall   time.Duration // time without progress after which the lease is released
	Handler time.Duration // for one call of the handler; 0 means no limit
	Return  time.Duration // for a handler to return after its context has ended
}

// Verdict is the action that a shard needs.
type Verdict uint8

// The verdicts.
const (
	Sound   Verdict = iota
	Slow            // log that its handler has been running for a long time
	Stalled         // give up its lease
	Hangs           // abandon its handler, which ignores the end of its context
)

const (
	// troubleAfter is how long a problem must last before heartbeats report it.
	troubleAfter = 10 * time.Second
	// mostPatience is the maximum number of times that Limits.Stall is doubled, for a shard that
	// stalls repeatedly.
	mostPatience = 5
)

// patience returns how long reading may fail for a shard that has stalled before.
func patience(stall time.Duration, stalls int) time.Duration {
	return stall << min(stalls, mostPatience)
}

// Judge decides whether the worker may keep the lease. since is when the problem began.
func (s *Shard) Judge(now time.Time, limits Limits) (what Verdict, since time.Time) {
	patience := patience(limits.Stall, s.Stalls)
	switch {
	case s.Left:
		return Sound, time.Time{}
	case !s.Ended.IsZero():
		if now.Sub(s.Ended) >= limits.Return {
			return Hangs, s.Ended
		}
	case s.Handling == health.InHandler, s.Handling == health.StoringDeadLetters:
		switch works := now.Sub(s.Since); {
		case limits.Handler > 0 && works >= limits.Handler:
			return Stalled, s.Since
		case works >= limits.Stall && !s.ToldSlow:
			return Slow, s.Since
		case s.Parallel && s.readsInVain(now, patience):
			return Stalled, s.Trying
		}
	case s.Handling == health.AfterStall, s.Handling == health.OpeningHandler:
		if now.Sub(s.Since) >= patience {
			return Stalled, s.Since
		}
	case s.Parallel:
		if s.readsInVain(now, patience) {
			return Stalled, s.Trying
		}
	case s.Handling == health.NoReason && !s.Trying.IsZero() && !(s.ForAll && s.Err != nil):
		// While the handler was running, the shard did not wait for reading.
		since := slices.MaxFunc([]time.Time{s.Trying, s.Since}, time.Time.Compare)
		if now.Sub(since) >= patience {
			return Stalled, since
		}
	}
	return Sound, time.Time{}
}

// readsInVain reports whether reading has failed for too long, with an error that other workers
// would not get.
func (s *Shard) readsInVain(now time.Time, patience time.Duration) bool {
	return !s.Trying.IsZero() && !(s.ForAll && s.ReadErr != nil) && now.Sub(s.Trying) >= patience
}

// Trouble returns the trouble that heartbeats report about the shard. some is false if there is
// none. The caller sets the key.
func (s *Shard) Trouble(now time.Time, limits Limits) (t lease.Trouble, some bool) {
	report := func(reason health.Reason, since time.Time, least time.Duration) {
		if d := now.Sub(since); d >= least {
			t, some = lease.Trouble{State: reason.Reported(), For: d.Truncate(time.Second)}, true
			if s.Err != nil {
				t.Why = whyOf(s.Err)
			}
		}
	}
	switch {
	case s.Left:
		report(health.Abandoned, s.Ended, 0)
	case !s.Failing.IsZero():
		report(s.Handling, s.Failing, troubleAfter)
		if some {
			if t.Failing = s.FailingAt; t.Failing.Letters {
				t.State = health.DeadLettersFailed.Reported()
			}
		}
	case s.Handling == health.InHandler, s.Handling == health.StoringDeadLetters:
		report(s.Handling, s.Since, limits.Stall)
	case s.Handling == health.AfterStall, s.Handling == health.OpeningHandler, s.Handling == health.ClosingHandler:
		report(s.Handling, s.Since, troubleAfter)
	case s.Handling == health.NoReason && s.Lacks != nil:
		report(health.AwaitingMemory, s.LacksSince, troubleAfter)
	case s.Handling == health.NoReason && !s.Trying.IsZero() && (s.Err != nil || s.Reading == health.AwaitingMemory):
		least := troubleAfter
		if s.ForAll && !s.Throttled { // another attempt will not help, so the leader should know at once
			least = 0
		}
		report(s.Reading, slices.MaxFunc([]time.Time{s.Trying, s.Since}, time.Time.Compare), least)
	}
	return t, some
}

// LacksMemory reports whether reading has waited for memory for long enough to be reported.
func (s *Shard) LacksMemory(now time.Time) bool {
	return s.Lacks != nil && now.Sub(s.LacksSince) >= troubleAfter
}

// whyOf returns the text of an error for a heartbeat. It fits into lease.Trouble.Why.
func whyOf(err error) string { return errtext.Cut(errtext.Short(err.Error()), lease.MaxWhyBytes) }

// Stalls counts the stalls of a shard in this process.
type Stalls struct {
	Count int // number of consecutive stalls
	Last  time.Time
}

// Counting returns the number of stalls that still count. After some time, stalls no longer count,
// because another worker may have read the shard without trouble.
func (s Stalls) Counting(now time.Time, stall time.Duration) int {
	if now.Sub(s.Last) > 2*patience(stall, s.Count) {
		return 0
	}
	return s.Count
}
