package shardrun

import (
	"cmp"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/backlog"
	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/keyed"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/pull"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
)

// The run that a loop belongs to calls the methods of this file, and so does the code that reports
// the status of shards. Any goroutine may call them at any time. Snapshot, Status and Held wait
// neither for the mutex of a term nor for the user's code.

// Term returns the term of the loop.
func (l *Loop) Term() *group.Term { return l.term }

// Key returns the shard.
func (l *Loop) Key() lease.Key { return l.term.Lease.Key }

// Snapshot returns the facts about the shard that package supervise evaluates. well reports that
// the term has made progress, or that there was nothing to handle.
func (l *Loop) Snapshot() (s supervise.Shard, well bool) {
	r := source.Status{Doing: health.NotStarted}
	if from := l.pagesNow(); from != nil {
		r = from.Status()
	}
	beside := l.lookAtKeys()
	l.mu.Lock()
	defer l.mu.Unlock()
	s = supervise.Shard{
		Handling: l.state, Since: l.since.Time(), Stalls: int(l.stalls),
		Ended: l.ended.Time(), Left: l.left != nil, ToldSlow: l.toldSlow,
		Reading: r.Doing, Trying: r.Trying, ReadErr: r.Err,
		ForAll: l.forAll, ToldFails: l.toldFails,
	}
	if r.Err != nil {
		s.Throttled = streams.Throttled(r.Err)
		s.Missing = errors.As(r.Err, new(*types.ResourceNotFoundException))
	}
	if l.state == health.AwaitingBatch { // nothing of it can fail but reading
		s.Handling = health.NoReason
	}
	if l.failure != nil {
		s.Err, s.Failing, s.FailingAt = l.failure.err, l.failure.since.Time(), l.failure.at
	} else if l.state == health.NoReason {
		s.Err = cmp.Or(r.Err, r.Lacks)
	}
	if r.Lacks != nil {
		s.Lacks, s.LacksSince = r.Lacks, r.Since
	}
	if beside.State != health.NoReason {
		s.Parallel = true
		s.Handling, s.Since = beside.State, beside.Since.Time()
		s.Failing, s.FailingAt = beside.Failing.Time(), beside.At
		if s.Err = beside.Err; s.Err == nil {
			s.Err = r.Err
		}
	}
	return s, l.well || l.state == health.NoReason && r.Doing == health.AtTip
}

// Status describes a shard for people.
type Status struct {
	At, Saved Position
	Reason    health.Reason // of handling if there is something to handle, else of reading
	Since     time.Time
	Attempt   int // failures in a row, of handling or else of reading
	Err       error
	Reading   health.Reason
	Source    source.Status
	Lags      backlog.Lags
	Held      pull.Hold
	Expired   bool // the position has left the stream, and the shard stays there
	Keys      keyed.Look
}

// Status returns the present status of the shard.
func (l *Loop) Status() Status {
	s := Status{
		At: l.term.At(), Saved: l.term.Saved(), Reading: health.NotStarted,
		Source: source.Status{Behind: -1}, Held: l.Held(), Keys: l.lookAtKeys(),
	}
	if from := l.pagesNow(); from != nil {
		r := from.Status()
		s.Source, s.Reading = r, r.Doing
		s.Reason, s.Since, s.Attempt, s.Err = s.Reading, r.Since, r.Attempt, cmp.Or(r.Err, r.Lacks)
	} else {
		s.Reason = s.Reading
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var undone, unsaved time.Time
	if l.session != nil {
		undone, unsaved = l.session.handed.Oldest(s.At), l.session.handed.Oldest(s.Saved)
	}
	s.Lags = backlog.Now(s.Source, undone, unsaved, time.Now())
	s.Expired = l.stays
	if l.state != health.NoReason {
		s.Reason, s.Since = l.state, l.since.Time()
		if l.failure != nil {
			s.Attempt, s.Err = l.failure.attempt, l.failure.err
			s.Reason = failed(s.Reason, l.failure.at)
		}
	}
	if k := &s.Keys; k.State != health.NoReason {
		s.Reason, s.Since, s.Attempt, s.Err = failed(k.State, k.At), k.Since.Time(), k.Attempt, k.Err
	}
	if l.left != nil {
		s.Reason, s.Since = health.Abandoned, l.ended.Time()
	}
	return s
}

// failed returns the reason while the handler waits to be called again, or while dead letters wait
// to be stored again.
func failed(reason health.Reason, at lease.Failing) health.Reason {
	if reason == health.HandlerFailed && at.Letters {
		return health.DeadLettersFailed
	}
	return reason
}

// lookAtKeys returns the state of the keys that are handled in parallel.
func (l *Loop) lookAtKeys() (look keyed.Look) {
	if r := l.runnerNow(); r != nil {
		look = r.Look()
	}
	return look
}

// Rate returns the throughput of the shard in bytes per second, averaged over about a minute.
func (l *Loop) Rate(now time.Time) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rate.Now(now)
}

// Held returns why the function that pulls keeps the checkpoint in place. It reads the hold of the
// current handler, so a hold cannot outlast its term. An abandoned handler holds nothing, because
// its lease is released.
func (l *Loop) Held() pull.Hold {
	l.mu.Lock()
	s, left := l.session, l.left != nil
	l.mu.Unlock()
	if left {
		return pull.Hold{}
	}
	return s.pulling().Held()
}

// SeeEnd sets the load of the term, and notes the time if the term's context has ended.
func (l *Loop) SeeEnd(now time.Time) {
	l.term.SetRate(l.Rate(now))
	if l.term.Context().Err() != nil {
		l.note(func(n *notes) { n.ended = cmp.Or(n.ended, mono.Of(now)) })
	}
}

// Ended returns when the term's context was seen to have ended.
func (l *Loop) Ended() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended.Time()
}

// Stall notes that this worker releases the lease of the shard, because the shard has stalled.
func (l *Loop) Stall(now time.Time) { l.note(func(n *notes) { n.ended = mono.Of(now) }) }

// ToldFails notes whether failing reads were reported.
func (l *Loop) ToldFails(told bool) { l.note(func(n *notes) { n.toldFails = told }) }

// ToldSlow notes that a slow handler was reported.
func (l *Loop) ToldSlow() { l.note(func(n *notes) { n.toldSlow = true }) }

// SetStalls sets the number of consecutive terms before this one in which the shard has stalled.
func (l *Loop) SetStalls(terms int16) { l.note(func(n *notes) { n.stalls = terms }) }

// Leave notes that the handler is abandoned.
func (l *Loop) Leave() { l.note(func(n *notes) { n.left = make(chan struct{}) }) }

// Left returns a channel that is closed when the abandoned handler has returned. It returns nil if
// the handler was not abandoned.
func (l *Loop) Left() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}

// Returned notes that the handler has returned. It is called once, when the loop has ended. It
// reports whether the handler had been abandoned.
func (l *Loop) Returned() (wasLeft bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left == nil {
		return false
	}
	close(l.left)
	return true
}

// Block sets the state of a shard that waits after a stall, until unblock is called.
func (l *Loop) Block() (unblock func()) {
	l.enter(health.AfterStall, 0, nil)
	return func() { l.enter(health.NoReason, 0, nil) }
}

// StopSource ends a subscription that the shard's next owner would have to replace.
func (l *Loop) StopSource() {
	if from := l.pagesNow(); from != nil {
		from.Stop()
	}
}

// Acquit clears the suspicion that a record kills its workers, if there is no record after the
// position at which the owners died. The supervisor calls it for shards with nothing to handle.
func (l *Loop) Acquit() {
	d := l.term.Deaths()
	if !failure.Suspicious(d, l.in.SuspectAfter) || d.At != l.term.At() || l.isGathering() {
		return
	}
	if from := l.pagesNow(); from == nil || from.Status().Buffered > 0 {
		return
	}
	note := failure.WithKilled(lease.Deaths{At: d.At}, failure.ParseKilled(d.Beyond), l.term.Lease.Epoch)
	if note == d {
		return
	}
	// A running loop may have a record that it has not begun to handle. So the note is stored only
	// while the loop is parked.
	l.term.NoteParked(note)
}

// isGathering reports whether a batch waits.
func (l *Loop) isGathering() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == health.AwaitingBatch
}
