package failure

import (
	"time"

	"github.com/weir-go/weir/internal/lock"
)

// Brake applies a policy for all shards of a run. It keeps when a call last succeeded, and how many
// records may still be given up.
type Brake struct {
	Policy Policy

	mu      lock.Mutex[lock.Failures] // guards the fields below
	worked  time.Time                 // when the last call began that succeeded
	allowed allowance
}

// Works notes that a call succeeded that began then.
func (b *Brake) Works(began time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if began.After(b.worked) {
		b.worked = began
	}
}

// LastWorked returns when the last call began that has succeeded by now.
func (b *Brake) LastWorked() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.worked
}

// Took notes that n records were given up.
func (b *Brake) Took(n int, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed.take(n, b.Policy.PerMinute, now)
}

// Judge returns the verdict on a failed call that h has noted. The call had a number of records.
// The first of these, a number of old ones, are older than MaxAge. worked is the result of
// LastWorked when the call began.
func (b *Brake) Judge(h *History, of Blame, records, old int, worked, now time.Time) Verdict {
	if !b.Policy.On || records == 0 { // 0: the handler fails at the end of the shard
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

// JudgeKiller says what happens to a record that has killed its workers. This worker has had the
// shard since then.
func (b *Brake) JudgeKiller(since, now time.Time) Action {
	return b.Policy.JudgeKiller(now.Sub(since), b.LastWorked().After(since), b.room(now))
}

func (b *Brake) room(now time.Time) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.allowed.now(b.Policy.PerMinute, now)
}

// allowance is how many records may still be given up. It grows by the limit of a minute each
// minute, up to that limit.
type allowance struct {
	left float64
	at   time.Time // when left was right
}

// now returns what is left.
func (a *allowance) now(perMinute int, now time.Time) float64 {
	if a.at.IsZero() {
		return float64(perMinute)
	}
	return min(a.left+now.Sub(a.at).Minutes()*float64(perMinute), float64(perMinute))
}

// take uses n of it, or all there is.
func (a *allowance) take(n, perMinute int, now time.Time) {
	a.left, a.at = max(a.now(perMinute, now)-float64(n), 0), now
}
