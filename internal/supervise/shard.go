// Package supervise decides, from what was seen at a moment, whether a shard, a worker and its
// reading are well, and what is to be done about what is not. It looks at nothing itself and does
// nothing: the run takes the snapshots and acts.
package supervise

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/weir-go/weir/lease"
)

// State is the state of a shard, in the words of weir.ShardState.
type State string

// The states of handling, and those of reading that decide something.
const (
	AtTip           State = "at the tip"
	Pacing          State = "pacing"
	AwaitingHandler State = "waiting for the handler"
	AwaitingMemory  State = "waiting for memory"
	Subscribed      State = "subscribed"
	Handling        State = "in the handler"
	GivingUp        State = "giving records up"
	Opening         State = "opening its handler"
	Closing         State = "closing its handler"
	Blocked         State = "waiting after a stall"
	Abandoned       State = "abandoned"
	Gathering       State = "waiting for a full batch"
	Retrying        State = "waiting to handle again"
	Suspected       State = "suspected of killing workers"
	Ending          State = "read to its end"
	LettersFail     State = "letters cannot be put" // of Trouble alone
)

// Shard is how a shard that is held stands at a moment. Times are zero where there is nothing.
type Shard struct {
	Handling State     // state of handling; "" when there is nothing to handle
	Since    time.Time // when that began
	Failing  time.Time // the first of the handler's failures in a row
	Err      error     // of the handler, or else of reading
	Stalls   int       // terms of the shard in a row, before this one, that stalled in this process
	Ended    time.Time // when the term's context was seen to have ended
	Left     bool      // its handler was left behind
	ToldSlow bool      // the slow handler was already logged
	Parallel bool      // reading continues during Handling, which describes one of many calls

	Reading   State     // state of reading
	Trying    time.Time // when reading began to fail
	ReadErr   error     // why the last read failed
	Throttled bool      // that is because reads come too fast
	Missing   bool      // reading fails because the stream does not exist
	ForAll    bool      // the last read failed, as it would on every worker
	ToldFails bool      // the failing reads were already logged

	Lacks      error     // why reading waits for memory, nil if it does not
	LacksSince time.Time // when that wait began

	FailingAt lease.Failing // at what the handler fails; nothing if that is not known
}

// Limits are the options that bound how long something may take.
type Limits struct {
	Stall   time.Duration // without progress, before the lease is given up
	Handler time.Duration // one call of the handler; 0 is no limit
	Return  time.Duration // of a handler, after its context has ended
}

// Verdict is the action that a shard needs.
type Verdict uint8

// The verdicts.
const (
	Sound   Verdict = iota
	Slow            // log that its handler has been running for long
	Stalled         // give its lease up
	Hangs           // leave its handler behind, which ignores that its context has ended
)

const (
	// troubleAfter is how long something may go wrong before the worker reports it with its beats.
	troubleAfter = 10 * time.Second
	// mostPatience is how often Limits.Stall doubles for a shard that stalls again and again.
	mostPatience = 5
)

// patience returns how long reading may fail for a shard that has stalled before.
func patience(stall time.Duration, stalls int) time.Duration {
	return stall << min(stalls, mostPatience)
}

// Judge decides whether the lease may be kept. since is when what is wrong began.
func (s *Shard) Judge(now time.Time, limits Limits) (what Verdict, since time.Time) {
	patience := patience(limits.Stall, s.Stalls)
	switch {
	case s.Left:
		return Sound, time.Time{}
	case !s.Ended.IsZero():
		if now.Sub(s.Ended) >= limits.Return {
			return Hangs, s.Ended
		}
	case s.Handling == Handling, s.Handling == GivingUp:
		switch works := now.Sub(s.Since); {
		case limits.Handler > 0 && works >= limits.Handler:
			return Stalled, s.Since
		case works >= limits.Stall && !s.ToldSlow:
			return Slow, s.Since
		case s.Parallel && s.readsInVain(now, patience):
			return Stalled, s.Trying
		}
	case s.Handling == Blocked, s.Handling == Opening:
		if now.Sub(s.Since) >= patience {
			return Stalled, s.Since
		}
	case s.Parallel:
		if s.readsInVain(now, patience) {
			return Stalled, s.Trying
		}
	case s.Handling == "" && !s.Trying.IsZero() && !(s.ForAll && s.Err != nil):
		// While the handler was running, the shard did not wait for reading.
		since := slices.MaxFunc([]time.Time{s.Trying, s.Since}, time.Time.Compare)
		if now.Sub(since) >= patience {
			return Stalled, since
		}
	}
	return Sound, time.Time{}
}

// readsInVain reports whether reading has failed for too long, in a way that is not that of every
// worker.
func (s *Shard) readsInVain(now time.Time, patience time.Duration) bool {
	return !s.Trying.IsZero() && !(s.ForAll && s.ReadErr != nil) && now.Sub(s.Trying) >= patience
}

// Trouble returns the trouble that heartbeats report about the shard, if any. The caller fills in
// the key.
func (s *Shard) Trouble(now time.Time, limits Limits) (t lease.Trouble, some bool) {
	report := func(state State, since time.Time, least time.Duration) {
		if d := now.Sub(since); d >= least {
			t, some = lease.Trouble{State: string(state), For: d.Truncate(time.Second)}, true
			if s.Err != nil {
				t.Why = plain(s.Err.Error())
			}
		}
	}
	switch {
	case s.Left:
		report(Abandoned, s.Ended, 0)
	case !s.Failing.IsZero():
		report(s.Handling, s.Failing, troubleAfter)
		if some {
			if t.Failing = s.FailingAt; t.Failing.Letters {
				t.State = string(LettersFail)
			}
		}
	case s.Handling == Handling, s.Handling == GivingUp:
		report(s.Handling, s.Since, limits.Stall)
	case s.Handling == Blocked, s.Handling == Opening, s.Handling == Closing:
		report(s.Handling, s.Since, troubleAfter)
	case s.Handling == "" && s.Lacks != nil:
		report(AwaitingMemory, s.LacksSince, troubleAfter)
	case s.Handling == "" && !s.Trying.IsZero() && (s.Err != nil || s.Reading == AwaitingMemory):
		report(s.Reading, slices.MaxFunc([]time.Time{s.Trying, s.Since}, time.Time.Compare), troubleAfter)
	}
	return t, some
}

// LacksMemory reports whether reading has waited for memory for long enough to be reported.
func (s *Shard) LacksMemory(now time.Time) bool {
	return s.Lacks != nil && now.Sub(s.LacksSince) >= troubleAfter
}

// plain is a text without control characters: it is shown at terminals.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// Stalls counts the stalls of a shard in this process.
type Stalls struct {
	Count int // in a row
	Last  time.Time
}

// Counting is how many stalls still count: another worker may have had the shard since, and no
// trouble with it.
func (s Stalls) Counting(now time.Time, stall time.Duration) int {
	if now.Sub(s.Last) > 2*patience(stall, s.Count) {
		return 0
	}
	return s.Count
}
