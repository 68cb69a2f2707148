package supervise

import (
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
)

// Evidence shows whether this worker can read at all.
type Evidence struct {
	Reads  bool      // at least one shard can be read
	InVain bool      // a read has failed for a long time
	Since  time.Time // when the first such read began to fail
}

// SuspectAfter returns how long reading must fail before a worker suspects itself as the cause.
func SuspectAfter(stall time.Duration) time.Duration {
	return min(suspectAfter, stall/4) // less than the time after which a lease is released
}

const suspectAfter = 10 * time.Second

// Add adds a shard to the evidence. Only its reading counts. A running handler proves nothing.
func (e *Evidence) Add(s *Shard, now time.Time, suspect time.Duration) {
	switch {
	case s.Left || !s.Ended.IsZero() || s.Handling != health.NoReason:
	case s.ForAll && s.Err != nil:
		e.Reads = true // Kinesis answers, with an error that every worker would get
	case !s.Trying.IsZero() && now.Sub(s.Trying) >= suspect && s.Reading != health.AwaitingMemory:
		e.AddInVain(s.Trying)
	case s.Reading == health.AtTip, s.Reading == health.Pacing, s.Reading == health.AwaitingHandler, s.Reading == health.Subscribed:
		e.Reads = true
	}
}

// AddInVain adds a read that has failed since the given time.
func (e *Evidence) AddInVain(since time.Time) {
	if !e.InVain || since.Before(e.Since) {
		e.InVain, e.Since = true, since
	}
}

// Isolation determines whether this worker can read at all. While none of its shards can be read,
// either the shards or the worker may be the cause. The worker then probes shards of other workers,
// of any stream. If the last probe failed, the worker's heartbeats report that it is cut off, even
// if it holds no lease any more. The plan then assigns no more leases to this worker. The zero
// Isolation is ready to use.
type Isolation struct {
	Probes int   // number of probes since reading last succeeded
	Why    error // error of the last probe; nil if it succeeded

	since   time.Time // when reading began to fail; zero if it does not
	probing bool
	probed  time.Time // when the last probe ended
}

// Observe adds evidence, and reports whether to begin a probe.
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
		pause = 2 * beat // to recover quickly
	}
	if s.since.IsZero() || s.probing || !s.probed.IsZero() && now.Sub(s.probed) < pause {
		return false
	}
	s.probing = true
	s.Probes++
	return true
}

// Probed notes the result of a probe.
func (s *Isolation) Probed(now time.Time, err error) {
	s.probing, s.probed = false, now
	if s.Why = err; s.since.IsZero() {
		s.Why = nil // reading has succeeded meanwhile
	}
}

// Explains reports whether a cut-off worker is why a shard waits for the reason. Such a worker
// releases its shards and may take them again, so the trouble of a shard is more recent.
func Explains(reason health.Reason) bool {
	switch reason {
	case health.ReadFailed, health.NotStarted, health.AfterStall, health.CutOff:
		return true
	default:
		return reason.Activity() == health.Reading && reason.Trouble()
	}
}

// Trouble returns the trouble that the worker reports about itself. some is false if there is none.
func (s *Isolation) Trouble(now time.Time) (t lease.Trouble, some bool) {
	if s.since.IsZero() || s.Why == nil {
		return t, false
	}
	return lease.Trouble{State: lease.CutOff, For: now.Sub(s.since).Truncate(time.Second), Why: whyOf(s.Why)}, true
}
