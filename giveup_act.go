package weir

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/lease"
)

// givingUp is what the shards of a run share about giving records up.
type givingUp struct {
	mu      lock.Mutex[lock.Failures]
	worked  time.Time // when the last call of a handler began that succeeded
	allowed allowance
	gaveUp  map[lease.Key]gaveUp // lately; nil before there is any
}

// works notes that a call of a handler succeeded, which began then.
func (g *givingUp) works(began time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if began.After(g.worked) {
		g.worked = began
	}
}

// lastWorked is when the last call began that has succeeded by now.
func (g *givingUp) lastWorked() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.worked
}

// room is how many records may still be given up.
func (g *givingUp) room(perMinute int, now time.Time) float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.allowed.now(perMinute, now)
}

// took notes that n records were given up.
func (g *givingUp) took(n, perMinute int, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.allowed.take(n, perMinute, now)
}

// afterFailure does what follows a failure of the handler that noteFailure has noted. worked is
// when the last call began that had succeeded by the time at which this one began. It returns the
// pause before the next step.
func (l *shardLoop) afterFailure(d *delivery, err error, of blame, worked time.Time) time.Duration {
	v := l.judge(d, of, worked)
	pause := retry.Pause(l.in.opts.RetryMin, l.in.opts.RetryMax, l.in.opts.GiveUp.failures(v.do, d.attempt, d.alone))
	switch v.do {
	case giveUp:
		l.handlerFailed(d, failedForGood, err, 0)
		d.dying = &dying{verdictOf: v, failure: err, last: err, letters: d.letters(v, err)}
		return 0
	case halveNow:
		d.halve(v.until)
		l.handlerFailed(d, failedInParts, err, 0)
		return 0
	case halve:
		d.halve(v.until)
	case waitForOthers, waitForRoom:
		l.tellWaits(d, v)
	}
	d.enter(ShardRetrying, d.attempt, err)
	l.handlerFailed(d, failedAgain, err, pause)
	return pause
}

// afterDenial handles a failure at a record that the handler had noted as done: the failure is
// reported, and counts as an attempt of no record. It returns the pause before the next step. The
// records that are not done become fewer each time, so the pause need not grow.
func (l *shardLoop) afterDenial(d *delivery, err error) time.Duration {
	d.noteFailure(err, false)
	pause := retry.Pause(l.in.opts.RetryMin, l.in.opts.RetryMax, 1)
	d.enter(ShardRetrying, d.attempt, err)
	l.handlerFailed(d, failedAgain, err, pause)
	d.noneFailed()
	return pause
}

// leaveOut gives up what the handler has left untried because of its age.
func (l *shardLoop) leaveOut(d *delivery, err error, n int) {
	d.mu.Lock()
	from := d.done
	d.mu.Unlock()
	d.moveHead(from)
	if d.last != nil { // it was tried before it got too old
		err = fmt.Errorf("%w; before that: %w", err, d.last)
	}
	v := verdictOf{verdict{giveUp, n, deadletter.Age}, from, from + n}
	d.dying = &dying{verdictOf: v, failure: err, last: err, letters: d.letters(v, err), untried: true}
}

// verdictOf is a verdict about the records of a delivery from one index to another.
type verdictOf struct {
	verdict
	from, until int
}

// judge asks the policy what follows a failure.
func (l *shardLoop) judge(d *delivery, of blame, worked time.Time) verdictOf {
	policy, now := &l.in.opts.GiveUp, time.Now()
	if policy.To == nil {
		return verdictOf{}
	}
	// What goroutines of the handler say is done while this goes on counts at its next call.
	d.mu.Lock()
	from, failed := d.head, []source.Record(nil)
	if until := d.limit(); from < until {
		failed = d.kept.records[from:until]
	}
	d.mu.Unlock()
	if len(failed) == 0 { // the handler fails at the shard's end
		return verdictOf{}
	}
	f := failedCall{
		records: len(failed), named: of.named, rejected: of.rejected, attempts: d.attempt, alone: d.alone,
		room: l.in.givingUp.room(policy.PerMinute, now),
	}
	if policy.MaxAge > 0 {
		f.old = olderThan(failed, now.Add(-policy.MaxAge))
	}
	since := d.failed
	if policy.Bisect {
		since = d.suspect
	}
	f.failing, f.other = now.Sub(since), worked.After(since) && worked.After(d.before)
	v := policy.judge(f)
	return verdictOf{v, from, from + v.records}
}

// olderThan is how many records from the first on arrived before then.
func olderThan(records []source.Record, then time.Time) (n int) {
	for i := range records {
		if at := records[i].Arrival; at == 0 || at >= then.UnixMilli() {
			break
		}
		n++
	}
	return n
}

// dying are records of a delivery that are given up, and are done once their letters are put.
type dying struct {
	verdictOf
	failure error // of the handler
	letters []deadletter.Letter
	tries   int
	last    error // that the letters could not be put, or else failure
	untried bool  // the handler left them out: they are none of those that a minute may have
}

// putLetters puts letters once, and returns the pause before it has to be tried again. It fails
// when the term is over.
func (l *shardLoop) putLetters(d *delivery) (time.Duration, error) {
	g, policy := d.dying, &l.in.opts.GiveUp
	d.enter(ShardGivingUp, d.attempt, g.last)
	g.tries++
	if err := contained("GiveUp.To", func() error { return policy.To.Put(&d.ctx, g.letters) }); err != nil {
		if cause := context.Cause(l.term.Context()); cause != nil {
			return 0, cause
		}
		l.in.counted.lettersFailed.Add(1)
		pause := retry.Pause(l.in.opts.RetryMin, l.in.opts.RetryMax, g.tries)
		g.last = err
		l.lettersFailed(d, g.letters, err, g.tries, pause)
		return pause, nil
	}
	if !g.untried {
		l.in.givingUp.took(len(g.letters), policy.PerMinute, time.Now())
	}
	l.in.counted.recordsGivenUp.Add(uint64(len(g.letters)))
	l.tellGivenUp(d, g.verdictOf, g.letters, g.failure)
	d.dying = nil
	d.mu.Lock()
	d.done = max(d.done, g.until)
	d.mu.Unlock()
	d.gone += len(g.letters)
	return 0, nil
}

// putAll puts letters until that is done. It fails when the term is over or the lease is wanted
// back.
func (l *shardLoop) putAll(d *delivery) error {
	for d.dying != nil {
		pause, err := l.putLetters(d)
		if err != nil {
			return err
		}
		if pause > 0 {
			if err := retry.Wait(l.term.Reading(), pause); err != nil {
				return err
			}
		}
	}
	return nil
}

// letters are those of the records that are given up.
func (d *delivery) letters(v verdictOf, failure error) []deadletter.Letter {
	var of deadletter.Letter
	stack := ""
	if panicked := (*PanicError)(nil); errors.As(failure, &panicked) {
		stack = panicked.Stack
	}
	of.Describe(failure, stack)
	opts, attempts := &d.loop.in.opts, d.attempt
	if (opts.GiveUp.Bisect || v.reason == deadletter.Rejected) && d.alone > 0 {
		attempts = d.alone // before it was found it failed with others
	}
	of.Version, of.App, of.Worker, of.Epoch = deadletter.Version, opts.App, opts.Worker, d.loop.term.Lease.Epoch
	of.GivenUp = time.Now().UTC()
	of.FirstFailure, of.LastFailure = cmp.Or(d.failed.UTC(), of.GivenUp), cmp.Or(d.latest.UTC(), of.GivenUp)
	of.Reason, of.Attempts, of.Together = v.reason, attempts, v.records
	d.mu.Lock()
	defer d.mu.Unlock()
	letters := make([]deadletter.Letter, v.records)
	for i, r := range whole(d.kept.records[v.from:v.until]) {
		letters[i] = of
		letters[i].ID, letters[i].Stream, letters[i].Shard = deadletter.ID(opts.App, r.ID()), d.from.Stream, d.from.Shard
		letters[i].SequenceNumber, letters[i].Position, letters[i].PartitionKey = r.SequenceNumber, r.Position().String(), r.PartitionKey
		letters[i].Data = bytes.Clone(r.Data) // the destination may keep it
		if r.arrival != 0 {
			letters[i].Arrived = r.ArrivalTime().UTC()
		}
	}
	return letters
}

// tellWaits tells once that a record is not given up although it could be.
func (l *shardLoop) tellWaits(d *delivery, v verdictOf) {
	if d.waits == v.do {
		return
	}
	d.waits = v.do
	why := "this worker has handled nothing else since it first failed"
	if v.do == waitForRoom {
		why = "that would be too many a minute"
	}
	l.repeated().Warn("a record is not given up yet; it is handled again meanwhile", "seq", l.term.At(), "reason", v.reason, "why", why)
	emit(l.in, l.in.opts.Events.GiveUpHeld, GiveUpHeld{Stream: d.from.Stream, Shard: d.from.Shard, Records: v.records, Reason: v.reason, Why: why})
}

// lettersFailed tells that letters could not be put.
func (l *shardLoop) lettersFailed(d *delivery, letters []deadletter.Letter, err error, attempt int, pause time.Duration) {
	l.repeated().Error("the letters of records that are given up could not be put; it is tried again, and the shard waits for that",
		"records", len(letters), "first", letters[0].ID, "attempt", attempt, "next", pause.Round(time.Millisecond), "err", err)
	d.enter(ShardRetrying, attempt, err)
	l.failsHere(d, true)
	emit(l.in, l.in.opts.Events.LettersFailed, LettersFailed{Stream: d.from.Stream, Shard: d.from.Shard, Records: len(letters), Err: err, Attempt: attempt, Next: pause})
}

// tellGivenUp tells that records were given up.
func (l *shardLoop) tellGivenUp(d *delivery, v verdictOf, letters []deadletter.Letter, failure error) {
	l.log().Error("gave up; letters keep the records, and the shard goes on", "records", len(letters), "first", letters[0].ID,
		"reason", v.reason, "attempts", letters[0].Attempts, "err", letters[0].Error)
	l.in.givingUp.noteGivenUp(l.term.Lease.Key, len(letters), letters[len(letters)-1].Position, letters[0].Error, time.Now())
	emit(l.in, l.in.opts.Events.GivenUp, GivenUp{
		Stream: d.from.Stream, Shard: d.from.Shard, Records: len(letters), First: letters[0].RecordID(), Reason: v.reason, Attempts: letters[0].Attempts, Err: failure,
	})
}
