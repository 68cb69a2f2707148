package supervise

import (
	"time"

	"github.com/weir-go/weir/lease"
)

// Evidence is what reading says about whether this worker can read at all.
type Evidence struct {
	Reads  bool      // something is read
	InVain bool      // something has been read in vain for long
	Since  time.Time // when the first of that began
}

// SuspectAfter is how long reading has to be in vain before a worker suspects itself.
func SuspectAfter(stall time.Duration) time.Duration {
	return min(suspectAfter, stall/4) // never as long as it takes to give a lease up
}

const suspectAfter = 10 * time.Second

// Add adds what a shard says. That is decided by reading alone: a handler at work says nothing.
func (e *Evidence) Add(s *Shard, now time.Time, suspect time.Duration) {
	switch {
	case s.Left || !s.Ended.IsZero() || s.Handling != "":
	case s.ForAll && s.Err != nil:
		e.Reads = true // the service answers, with what it would tell every worker
	case !s.Trying.IsZero() && now.Sub(s.Trying) >= suspect && s.Reading != AwaitingMemory:
		e.AddInVain(s.Trying)
	case s.Reading == AtTip, s.Reading == Pacing, s.Reading == AwaitingHandler, s.Reading == Subscribed:
		e.Reads = true
	}
}

// AddInVain adds that something has been in vain since then.
func (e *Evidence) AddInVain(since time.Time) {
	if !e.InVain || since.Before(e.Since) {
		e.InVain, e.Since = true, since
	}
}

// Isolation is what a worker finds out about whether it can read at all. While none of its shards
// can be read it cannot tell whether they are at fault or it is, so it probes others: a shard of
// whichever stream. It says with its beats that it is cut off when the last probe failed, also when
// it holds nothing any more; the plan then gives it nothing more. The zero Isolation is ready for
// use.
type Isolation struct {
	Probes int   // that were begun since reading succeeded last
	Why    error // of the last probe's failure; nil when it succeeded

	since   time.Time // when reading began to be in vain; zero while there is no suspicion
	probing bool
	probed  time.Time // when the last probe ended
}

// Observe takes the evidence in, and reports whether to begin a probe.
func (s *Isolation) Observe(now time.Time, e Evidence, beat time.Duration) (probe bool) {
	switch {
	case e.Reads:
		*s = Isolation{probing: s.probing}
	case e.InVain && s.since.IsZero():
		s.since = e.Since
	case !e.InVain && s.Why == nil && !s.probing:
		s.since = time.Time{}
	}
	pause := suspectAfter
	if s.Why != nil {
		pause = 2 * beat // to be back soon
	}
	if s.since.IsZero() || s.probing || !s.probed.IsZero() && now.Sub(s.probed) < pause {
		return false
	}
	s.probing = true
	s.Probes++
	return true
}

// Probed takes in what a probe found out.
func (s *Isolation) Probed(now time.Time, err error) {
	s.probing, s.probed = false, now
	if s.Why = err; s.since.IsZero() {
		s.Why = nil // reading has succeeded meanwhile
	}
}

// Trouble is what the worker reports of itself, if anything.
func (s *Isolation) Trouble(now time.Time) (t lease.Trouble, some bool) {
	if s.since.IsZero() || s.Why == nil {
		return t, false
	}
	return lease.Trouble{State: lease.CutOff, For: now.Sub(s.since).Truncate(time.Second), Why: s.Why.Error()}, true
}
