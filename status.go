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

// ShardState is what a held shard is at, or waits for. Every wait has a bound, or ends with the
// lease.
type ShardState string

const (
	// ShardStarting: the lease was just taken; nothing has been asked for yet.
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
	// most. Reading goes on.
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
	// Options.SuspectAfter. Its next record waits, for 15 min or [GiveUp].Patience at most, or for
	// records of other shards that are tried by themselves, before it is handled or given up.
	ShardSuspected ShardState = "suspected of killing workers"
	// ShardOpening: [ShardHandlers] are asked for the term's handler and where it begins.
	ShardOpening ShardState = "opening its handler"
	// ShardClosing: the term is over, and its handler is told; see [ShardHandler].
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

// ShardStatus is how one of a consumer's shards stands.
type ShardStatus struct {
	Stream, Shard string
	Epoch         uint64
	At            Position   // everything before is handled
	Saved         Position   // … and that is in the store up to here
	State         ShardState // of handling if that has something to do, else of reading
	Since         time.Time  // when State began
	Reading       ShardState // of reading, which goes on while the handler works
	ReadingSince  time.Time
	// failures in a row, of the handler or else of reading; 0 when all is well
	Attempt   int
	Err       error // the last of them; nil when all is well
	Throttled int   // reads that the service throttled, since the lease was taken
	Failed    int   // … that failed otherwise
	// … that were made a second time, because the connection of the first was silent
	Retried  int
	Behind   time.Duration // of the last answer; negative when not known
	Buffered int           // records that were read and wait to be handled
	// How far the shard is behind the tip of the stream now, negative when that is not known, as
	// before the first answer. ReadLag is the lag in the last answer, plus the time since then. If
	// reads fail before the first answer, it is the time for which they have failed, a lower bound.
	// HandledLag is the age of the oldest record that was read and is not handled, SavedLag of the
	// oldest whose progress is not saved; both are too large by what the records of one page lie
	// apart at most, and neither is less than the one before.
	ReadLag, HandledLag, SavedLag time.Duration
	// Expired says that the service refuses At, whose records have left the stream, and that the
	// shard stays there; see [FailExpired].
	Expired bool
	// Held is why At is kept where it is on purpose, such as "by an open window"; see [Shard.Hold].
	Held      string
	HeldSince time.Time
	// With Options.Parallel: how many partition keys have records that are not done, how many of
	// them the handler is at, and how many records there are from the oldest that is not done on.
	// Should this worker die, so many are handled again at most. Attempt and Err are of the oldest.
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

// noteArrival notes when the records of a page arrived that is to be handled. It returns the
// position after the last of them, if there are any; the handler may change them.
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

// failsAgain notes a failure of what goes on all the same.
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
