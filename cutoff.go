package weir

import (
	"context"
	"time"

	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/lease"
)

// sign is what a shard says about whether this worker can read at all.
type sign uint8

const (
	silent sign = iota
	reads
	inVain
)

// sign is decided by reading alone; a handler at work says nothing.
func (v vitals) sign(now time.Time, least time.Duration) sign {
	switch {
	case v.left != nil || !v.ended.IsZero() || v.state != "":
		return silent
	case v.same && v.err != nil:
		return reads // the service answers, with what it would tell every worker
	case !v.trying.IsZero() && now.Sub(v.trying) >= least && v.reading != ShardAwaitingMemory:
		return inVain
	case v.reading == ShardAtTip, v.reading == ShardPacing, v.reading == ShardAwaitingHandler, v.reading == ShardSubscribed:
		return reads
	}
	return silent
}

// isolation is what a worker finds out about whether it can read at all. While none of its shards
// can be read it cannot tell whether they are at fault or it is, so it probes others: a shard of
// whichever stream. It says with its beats that it is cut off when the last probe failed, also when
// it holds nothing any more; the plan then gives it nothing more.
type isolation struct {
	since   time.Time // when reading began to be in vain; zero while there is no suspicion
	probing bool
	probed  time.Time // when the last probe ended
	probes  int
	why     error // of the last probe; nil when it succeeded
}

const (
	// suspectAfter is how long reading has to be in vain before a worker probes.
	suspectAfter = 10 * time.Second
	// probeTimeout bounds a probe, which is a few calls for each of probeStreams streams at most.
	probeTimeout = 5 * time.Second
	probeStreams = 3
)

// see takes in what the shards said, and since when the first of them is read in vain. It reports
// whether to probe.
func (s *isolation) see(now time.Time, some [inVain + 1]bool, since time.Time, beat time.Duration) (probe bool) {
	switch {
	case some[reads]:
		*s = isolation{probing: s.probing}
	case some[inVain] && s.since.IsZero():
		s.since = since
	case !some[inVain] && s.why == nil && !s.probing:
		s.since = time.Time{}
	}
	pause := suspectAfter
	if s.why != nil {
		pause = 2 * beat // to be back soon
	}
	if s.since.IsZero() || s.probing || !s.probed.IsZero() && now.Sub(s.probed) < pause {
		return false
	}
	s.probing = true
	s.probes++
	return true
}

// probedAt takes in what a probe found out.
func (s *isolation) probedAt(now time.Time, err error) {
	s.probing, s.probed = false, now
	if s.why = err; s.since.IsZero() {
		s.why = nil // reading has succeeded meanwhile
	}
}

// trouble is what the worker reports of itself, if anything.
func (s *isolation) trouble(now time.Time) (t lease.Trouble, some bool) {
	if s.since.IsZero() || s.why == nil {
		return t, false
	}
	return lease.Trouble{State: lease.CutOff, For: now.Sub(s.since).Truncate(time.Second), Why: s.why.Error()}, true
}

// suspectAfter is never as long as it takes to give a lease up.
func (r *run) suspectAfter() time.Duration { return min(suspectAfter, r.opts.StallAfter/4) }

// probe tries to read from some of the streams, and notes what came of it.
func (r *run) probe(ctx context.Context, n int) {
	call, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	names := r.streams.Names()
	var err error
	for i := range min(probeStreams, len(names)) {
		if err = streams.Probe(call, r.client, r.caller, r.streams.Stream(names[(n+i)%len(names)]), n); err == nil {
			break
		}
	}
	if err == nil {
		err = r.lineage.probe(call, r)
	}
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	before := r.isolation.why
	r.isolation.probedAt(time.Now(), err)
	after := r.isolation.why
	r.mu.Unlock()
	switch {
	case before == nil && after != nil:
		r.opts.Logger.Error("this worker can read no shard of any stream; it asks for no more of them until it can", "err", after)
	case before != nil && after == nil:
		r.opts.Logger.Info("this worker can read again")
	}
}
