package supervise

import (
	"time"

	"github.com/weir-go/weir/lease"
)

// Evidence is the result of reading so far: whether this worker can read at all.
type Evidence struct {
	Reads  bool      // something is read
	InVain bool      // a read has failed for long
	Since  time.Time // when the first such read began to fail
}

// SuspectAfter is how long reading has to fail before a worker suspects itself.
func SuspectAfter(stall time.Duration) time.Duration {
	return min(suspectAfter, stall/4) // never as long as it takes to give a lease up
}

const suspectAfter = 10 * time.Second

// Add adds what a shard says. That is decided by reading alone: a handler at work says nothing.
func (e *Evidence) Add(s *Shard, now time.Time, suspect time.Duration) {
	switch {
	case s.Left || !s.Ended.IsZero() || s.Handling != "":
	case s.ForAll && s.Err != nil:
		e.Reads = true // the service answers, with an error that every worker would get
	case !s.Trying.IsZero() && now.Sub(s.Trying) >= suspect && s.Reading != AwaitingMemory:
		e.AddInVain(s.Trying)
	case s.Reading == AtTip, s.Reading == Pacing, s.Reading == AwaitingHandler, s.Reading == Subscribed:
		e.Reads = true
	}
}

// AddInVain adds a read that has failed since then.
func (e *Evidence) AddInVain(since time.Time) {
	if !e.InVain || since.Before(e.Since) {
		e.InVain, e.Since = true, since
	}
}

// Isolation determines whether this worker can read at all. While none of its shards can be read,
// it cannot know whether the shards or the worker are at fault, so it probes shards of other
// workers, of any stream. If the last probe failed, its heartbeats report that it is cut off, even
// when it holds no lease any more, and the plan assigns it no more leases. The zero Isolation is
// ready for use.
type Isolation struct {
	Probes int   // that were begun since reading succeeded last
	Why    error // of the last probe's failure; nil when it succeeded

	since   time.Time // when reading began to fail; zero while there is no suspicion
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

// Trouble returns the trouble that the worker reports about itself, if any.
func (s *Isolation) Trouble(now time.Time) (t lease.Trouble, some bool) {
	if s.since.IsZero() || s.Why == nil {
		return t, false
	}
	return lease.Trouble{State: lease.CutOff, For: now.Sub(s.since).Truncate(time.Second), Why: s.Why.Error()}, true
}
