package weir

import (
	"time"

	"github.com/weir-go/weir/deadletter"
)

// failedCall is a call of the handler that failed, and the history of what it failed at.
type failedCall struct {
	records  int           // that were handed over and are not done, at least one
	named    bool          // the handler said that it was the first of them
	rejected bool          // … or that what it failed at can never succeed
	attempts int           // calls that failed at the first record
	alone    int           // … of which so many were about it alone
	old      int           // records from the first on that are older than MaxAge
	failing  time.Duration // since the first failure that counts
	other    bool          // this worker has handled something else since then
	room     float64       // how many may still be given up, of those of a minute
}

// verdict is what follows a failed call.
type verdict struct {
	do      consequence
	records int               // of which it is the consequence, from the first
	reason  deadletter.Reason // for which it is given up, or could be
}

// consequence is what becomes of records that the handler failed at.
type consequence uint8

const (
	handleAgain consequence = iota // all of them, after a pause
	halve                          // the first half of them, after a pause, then the other
	halveNow                       // … at once
	giveUp                         // they are given up, and the rest is handled
	// they could be given up, but nothing else has succeeded either: again after a pause
	waitForOthers
	waitForRoom // … but that would be too many a minute
)

// judge says what follows a call of the handler that failed, by the policy alone. What fails as one
// is given up as one, but for what is not old enough.
func (g *GiveUp) judge(f failedCall) verdict {
	if g.To == nil {
		return verdict{do: handleAgain, records: f.records}
	}
	isolated := f.named || f.records == 1
	switch {
	case isolated:
	case f.rejected:
		return verdict{halveNow, f.records, deadletter.Rejected}
	case g.Bisect:
		return verdict{do: halve, records: f.records}
	}
	v := verdict{do: giveUp, records: f.records}
	attempts := f.attempts
	if g.Bisect {
		attempts = f.alone
	}
	if f.named {
		v.records = 1
	}
	switch {
	case f.rejected:
		v.reason = deadletter.Rejected
	case f.old > 0:
		v.reason, v.records = deadletter.Age, min(v.records, f.old)
	case g.Attempts > 0 && attempts >= g.Attempts:
		v.reason = deadletter.Attempts
	default:
		return verdict{do: handleAgain, records: f.records}
	}
	switch {
	case !f.rejected && !f.other && f.failing < g.Patience:
		v.do = waitForOthers
	case !g.roomFor(v.records, f):
		v.do = waitForRoom
	}
	return v
}

// failures is how many in a row the pause after the last of them is of. Those that find the record
// at fault are none of its own: each is about other records than the one before.
func (g *GiveUp) failures(then consequence, attempts, alone int) int {
	switch {
	case then == halve:
		return 1
	case g.Bisect && alone > 0:
		return alone
	}
	return attempts
}

// roomFor reports whether n records may be given up now. As many as are not given up in one minute
// wait, from their first failure, for the minutes that they take.
func (g *GiveUp) roomFor(n int, f failedCall) bool {
	if g.PerMinute < 0 {
		return true
	}
	more := float64(n-g.PerMinute) / float64(g.PerMinute)
	return f.room >= float64(min(n, g.PerMinute)) && f.failing.Minutes() >= more
}

// allowance is how many records may still be given up: so many a minute, saved up for a minute.
type allowance struct {
	left float64
	at   time.Time // when left was right
}

// now is what is left.
func (a *allowance) now(perMinute int, now time.Time) float64 {
	if a.at.IsZero() {
		return float64(perMinute)
	}
	return min(a.left+now.Sub(a.at).Minutes()*float64(perMinute), float64(perMinute))
}

// take takes n of it, or all there is.
func (a *allowance) take(n, perMinute int, now time.Time) {
	a.left, a.at = max(a.now(perMinute, now)-float64(n), 0), now
}
