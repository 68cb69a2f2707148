package failure

import (
	"time"

	"github.com/weir-go/weir/internal/lock"
)

// Brake applies a policy for all shards of a run. It stores when a call last succeeded, and how
// many records may still be dead-lettered.
type Brake struct {
	Policy Policy

	mu      lock.Mutex[lock.Failures] // guards the fields below
	worked  time.Time                 // start of the last call that succeeded
	allowed allowance
}

// Works records that a call succeeded. began is the start of the call.
func (b *Brake) Works(began time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if began.After(b.worked) {
		b.worked = began
	}
}

// LastWorked returns the start of the last call that has succeeded so far.
func (b *Brake) LastWorked() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.worked
}

// Took records that n records were dead-lettered.
func (b *Brake) Took(n int, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed.take(n, b.Policy.PerMinute, now)
}

// Judge returns the verdict on a failed call that is already in h. records is the number of records
// of the call. The parameter old is the number of these records, counted from the first, that are
// older than MaxAge. worked is the result of LastWorked when the call began.
func (b *Brake) Judge(h *History, of Blame, records, old int, worked, now time.Time) Verdict {
	if !b.Policy.On || records == 0 { // 0 means that the handler fails at the end of the shard
		return Verdict{}
	}
	since := h.First
	if b.Policy.Bisect {
		since = h.Suspect
	}
	return b.Policy.Judge(Call{
		From: h.Head, Records: records, Named: of.Named, Rejected: of.Rejected, Attempts: h.Attempts, Alone: h.Alone, Old: old,
		Failing: now.Sub(since), Other: worked.After(since) && worked.After(h.Before), Room: b.room(now),
	})
}

// JudgeKiller returns the next step for a record that has killed its workers. since is when this
// worker got the shard.
func (b *Brake) JudgeKiller(since, now time.Time) Action {
	return b.Policy.JudgeKiller(now.Sub(since), b.LastWorked().After(since), b.room(now))
}

func (b *Brake) room(now time.Time) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.allowed.now(b.Policy.PerMinute, now)
}

// allowance is the number of records that may still be dead-lettered. Each minute it grows by the
// limit per minute, up to that limit.
type allowance struct {
	left float64
	at   time.Time // the time for which left is valid
}

// now returns the allowance at the given time.
func (a *allowance) now(perMinute int, now time.Time) float64 {
	if a.at.IsZero() {
		return float64(perMinute)
	}
	return min(a.left+now.Sub(a.at).Minutes()*float64(perMinute), float64(perMinute))
}

// take uses n of the allowance, or all of it if n is larger.
func (a *allowance) take(n, perMinute int, now time.Time) {
	a.left, a.at = max(a.now(perMinute, now)-float64(n), 0), now
}
