package weir

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/backlog"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// ShardState is the current activity of a held shard, or the reason why it waits. Every wait has a
// limit, or ends with the lease.
type ShardState string

const (
	// ShardStarting: the lease was just taken, and nothing was requested yet.
	ShardStarting ShardState = "starting"
	// ShardAtTip: everything is handled; the next read is due after an idle interval; see
	// Options.IdleInterval.
	ShardAtTip ShardState = "at the tip"
	// ShardPacing: there is more to read, as soon as the service's limits allow.
	ShardPacing ShardState = "pacing"
	// ShardPositioning: the service is asked for an iterator, 20 s at most.
	ShardPositioning ShardState = "positioning"
	// ShardReading: records are asked for, or being received, 20 s at most for the answer or each
	// part of a large one.
	ShardReading ShardState = "reading"
	// ShardAwaitingHandler: records wait for the handler, and no more are read before it has taken
	// them.
	ShardAwaitingHandler ShardState = "waiting for the handler"
	// ShardAwaitingMemory: Options.MaxMemory has no room for the next records. It lasts until other
	// shards' handlers give memory back and the shards that asked before were served. Err says how
	// much is in use.
	ShardAwaitingMemory ShardState = "waiting for memory"
	// ShardBackingOff: a read failed, see Err, and is tried again after 10 s or so at most.
	ShardBackingOff ShardState = "backing off"
	// ShardSubscribing: a subscription is asked for, or the moment when the service allows one.
	// Only with FanOut.
	ShardSubscribing ShardState = "subscribing"
	// ShardSubscribed: records come as they are written. Only with FanOut.
	ShardSubscribed ShardState = "subscribed"
	// ShardGathering: a batch that is not full waits for more records, for Options.BatchWait at
	// most. Reading continues.
	ShardGathering ShardState = "waiting for a full batch"
	// ShardHandling: the handler is at work, for Options.HandlerTimeout at most if that is set; its
	// context ends when the lease is lost.
	ShardHandling ShardState = "in the handler"
	// ShardRetrying: the handler failed, see Err, and is called again after Options.RetryMax at
	// most.
	ShardRetrying ShardState = "waiting to handle again"
	// ShardGivingUp: letters of records that are given up are being put; see [GiveUp]. It counts as
	// handling for Options.HandlerTimeout.
	ShardGivingUp ShardState = "giving records up"
	// ShardSuspected: workers that had the shard died one after the other, see
	// Options.SuspectAfter. Its next record waits before it is handled or given up. It waits for 15
	// min or [GiveUp].Patience at most, or until single records of other shards were tried.
	ShardSuspected ShardState = "suspected of killing workers"
	// ShardOpening: [ShardHandlers] are asked for the term's handler and where it begins.
	ShardOpening ShardState = "opening its handler"
	// ShardClosing: the term is over, and its handler is being closed; see [ShardHandler].
	ShardClosing ShardState = "closing its handler"
	// ShardEnding: the shard was read to its end, and that is being saved with the next beat.
	ShardEnding ShardState = "read to its end"
	// ShardBlocked: the shard has stalled in this process before. It is begun again after a pause
	// of Options.RetryMax at most, and not before an abandoned handler of it has returned; the
	// lease goes back after Options.StallAfter.
	ShardBlocked ShardState = "waiting after a stall"
	// ShardAbandoned: the lease was given up, but the handler ignores that its context has ended.
	// It may belong to another worker.
	ShardAbandoned ShardState = "abandoned"
)

// ShardStatus is the status of one of a consumer's shards.
type ShardStatus struct {
	Stream, Shard string
	Epoch         uint64
	At            Position   // every record before it is handled
	Saved         Position   // the position in the store, at or before At
	State         ShardState // of the handler if it has work, otherwise of reading
	Since         time.Time  // when State began
	Reading       ShardState // of reading, which continues while the handler works
	ReadingSince  time.Time
	Attempt       int           // failures in a row, of the handler or else of reading; 0 after a success
	Err           error         // the last of these failures, or nil
	Throttled     int           // reads that the service throttled, since the lease was taken
	Failed        int           // reads that failed otherwise, since the lease was taken
	Retried       int           // reads that were repeated because the first connection was silent
	Behind        time.Duration // of the last answer; negative if unknown
	Buffered      int           // records that were read and wait for the handler
	// The lags measure how far the shard is behind the tip of the stream now. They are negative if
	// unknown, as before the first answer. ReadLag is the lag in the last answer, plus the time
	// since then. If reads fail before the first answer, it is the time for which they have failed,
	// a lower bound. HandledLag is the age of the oldest record that was read and is not handled,
	// and SavedLag the age of the oldest record whose progress is not saved. Both are too large by
	// at most the time between the first and the last record of one page. ReadLag is the smallest
	// of the three, and SavedLag the largest.
	ReadLag, HandledLag, SavedLag time.Duration
	// Expired is true if the service refuses At, whose records have left the stream, and the shard
	// stays there; see [FailExpired].
	Expired bool
	// Held is the reason why At is kept back on purpose, such as "by an open window"; see
	// [Shard.Hold].
	Held      string
	HeldSince time.Time
	// With Options.Parallel: Keys is the number of partition keys with unfinished records, Calls
	// the number of keys in the handler, and Span the number of records from the oldest unfinished
	// one on. If this worker dies, at most Span records are handled again. Attempt and Err belong
	// to the oldest record.
	Keys, Calls, Span int
}

// Shards returns how each shard that this consumer holds stands, sorted by stream and shard; none
// when it does not run. It may be called at any time, concurrently with [Consumer.Run].
func (c *Consumer) Shards() []ShardStatus {
	loops := c.running()
	all := make([]ShardStatus, 0, len(loops))
	for _, l := range loops {
		all = append(all, l.status())
	}
	slices.SortFunc(all, func(a, b ShardStatus) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Epoch, b.Epoch))
	})
	return all
}

// running returns the running loops of all runs.
func (c *Consumer) running() (all []*shardLoop) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.runs {
		all = r.running(all)
	}
	return all
}

func (l *shardLoop) status() ShardStatus {
	s := ShardStatus{
		Stream: l.term.Lease.Stream, Shard: l.term.Lease.Shard, Epoch: l.term.Lease.Epoch, At: l.term.At(), Saved: l.term.Saved(),
		Reading: ShardStarting, Behind: -1,
	}
	r := source.Status{Behind: -1}
	if from := l.pagesNow(); from != nil {
		r = from.Status()
		s.Reading, s.ReadingSince, s.Attempt, s.Err = ShardState(r.Doing.String()), r.Since, r.Attempt, r.Err
		if s.Err == nil {
			s.Err = r.Lacks
		}
		s.Behind, s.Buffered, s.Throttled, s.Failed, s.Retried = r.Behind, r.Buffered, r.Throttled, r.Failed, r.Retried
	}
	s.State, s.Since = s.Reading, s.ReadingSince
	l.lags(&s, &r)
	if h := l.held(); h.why != "" {
		s.Held, s.HeldSince = h.why, h.since.Time()
	}
	beside := l.lookAtKeys()
	s.Keys, s.Calls, s.Span = beside.Keys, beside.Calls, beside.Records
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Expired = l.refusal != nil && l.refusal.stays
	if l.state != "" {
		s.State, s.Since = l.state, l.since.Time()
		if l.failure != nil {
			s.Attempt, s.Err = l.failure.attempt, l.failure.err
		}
	}
	if beside.State != "" {
		s.State, s.Since, s.Attempt, s.Err = ShardState(beside.State), beside.Since.Time(), beside.Attempt, beside.Err
	}
	if l.left != nil {
		s.State, s.Since = ShardAbandoned, l.ended.Time()
	}
	return s
}

// noteArrival notes when the records of a page that will be handled arrived. It returns the
// position after the last of them, if there are any, because the handler may change the records.
func (l *shardLoop) noteArrival(page *source.Page) (end Position, some bool) {
	if len(page.Records) == 0 {
		return Position{}, false
	}
	l.needHandler()
	end = source.After(page.Records[len(page.Records)-1].SequenceNumber, shard.Whole)
	saved := l.term.Saved()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handles.handed.Saved(saved)
	l.handles.handed.Add(time.UnixMilli(page.Records[0].Arrival), end)
	return end, true
}

// lags says how far the shard is behind that is read as r.
func (l *shardLoop) lags(s *ShardStatus, r *source.Status) {
	var undone, unsaved time.Time
	l.mu.Lock()
	if l.handles != nil {
		undone, unsaved = l.handles.handed.Oldest(s.At), l.handles.handed.Oldest(s.Saved)
	}
	l.mu.Unlock()
	lags := backlog.Now(*r, undone, unsaved, time.Now())
	s.ReadLag, s.HandledLag, s.SavedLag = lags.Read, lags.Handled, lags.Saved
}

// failsAgain notes a failure that does not stop the shard.
func (l *shardLoop) failsAgain(attempt int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure == nil {
		l.failure = &handlerFailure{since: mono.Now()}
	}
	l.failure.err, l.failure.attempt = err, attempt
}

// enter notes what handling is at; nothing ("") leaves it to reading.
func (l *shardLoop) enter(state ShardState, attempt int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.since, l.toldSlow = state, mono.Now(), false
	switch {
	case err == nil:
		l.failure = nil
	case l.failure == nil:
		l.failure = &handlerFailure{err: err, attempt: attempt, since: l.since}
	default:
		l.failure.err, l.failure.attempt = err, attempt
	}
}
