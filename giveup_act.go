package weir

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
)

// afterFailure does what follows a failure of the handler that noteFailure has noted. worked is
// when the last call began that had succeeded by the time at which this one began. It returns the
// pause before the next step.
func (l *shardLoop) afterFailure(d *handover, err error, of failure.Blame, worked time.Time) time.Duration {
	v := l.judge(d, of, worked)
	pause := retry.Pause(l.in.opts.RetryMin, l.in.opts.RetryMax, l.in.brake.Policy.Failures(v.Do, &d.History))
	switch v.Do {
	case failure.GiveUp:
		l.handlerFailed(d, failedForGood, err, 0)
		d.dying = &dying{Verdict: v, failure: err, last: err, letters: d.letters(v, err)}
		return 0
	case failure.HalveNow:
		d.Halve(v.Until())
		l.handlerFailed(d, failedInParts, err, 0)
		return 0
	case failure.Halve:
		d.Halve(v.Until())
	case failure.WaitForOthers, failure.WaitForRoom:
		l.tellWaits(d, v)
	}
	d.enter(ShardRetrying, d.Attempts, err)
	l.handlerFailed(d, failedAgain, err, pause)
	return pause
}

// afterDenial handles a failure at a record that the handler had noted as done: the failure is
// reported, and counts as an attempt of no record. It returns the pause before the next step. The
// records that are not done become fewer each time, so the pause need not grow.
func (l *shardLoop) afterDenial(d *handover, err error) time.Duration {
	d.NoteFailure(err, false, time.Now())
	pause := retry.Pause(l.in.opts.RetryMin, l.in.opts.RetryMax, 1)
	d.enter(ShardRetrying, d.Attempts, err)
	l.handlerFailed(d, failedAgain, err, pause)
	d.Forget()
	return pause
}

// leaveOut gives up records that the handler has left untried because of their age.
func (l *shardLoop) leaveOut(d *handover, err error, n int) {
	from := d.MoveHead()
	if d.Err != nil { // it was tried before it got too old
		err = fmt.Errorf("%w; before that: %w", err, d.Err)
	}
	v := failure.Verdict{Do: failure.GiveUp, From: from, Records: n, Reason: deadletter.Age}
	d.dying = &dying{Verdict: v, failure: err, last: err, letters: d.letters(v, err), untried: true}
}

// judge asks the policy what follows a failure.
func (l *shardLoop) judge(d *handover, of failure.Blame, worked time.Time) failure.Verdict {
	brake, now := &l.in.brake, time.Now()
	if !brake.Policy.On {
		return failure.Verdict{}
	}
	failed, old := d.Failed(), 0
	if most := brake.Policy.MaxAge; most > 0 {
		old = olderThan(failed, now.Add(-most))
	}
	return brake.Judge(&d.History, of, len(failed), old, worked, now)
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
	failure.Verdict
	failure error // of the handler
	letters []deadletter.Letter
	tries   int
	last    error // that the letters could not be put, or else failure
	untried bool  // the handler left them out: they are none of those that a minute may have
}

// putLetters puts letters once, and returns the pause before the next attempt. It fails when the
// term is over.
func (l *shardLoop) putLetters(d *handover) (time.Duration, error) {
	g, policy := d.dying, &l.in.opts.GiveUp
	d.enter(ShardGivingUp, d.Attempts, g.last)
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
		l.in.brake.Took(len(g.letters), time.Now())
	}
	l.in.counted.recordsGivenUp.Add(uint64(len(g.letters)))
	l.tellGivenUp(d, g.Verdict, g.letters, g.failure)
	d.dying = nil
	d.GaveUp(g.Verdict)
	return 0, nil
}

// putAll puts letters until that is done. It fails when the term is over or the lease is wanted
// back.
func (l *shardLoop) putAll(d *handover) error {
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
func (d *handover) letters(v failure.Verdict, err error) []deadletter.Letter {
	var of deadletter.Letter
	stack := ""
	if panicked := (*PanicError)(nil); errors.As(err, &panicked) {
		stack = panicked.Stack
	}
	of.Describe(err, stack)
	opts, attempts := &d.loop.in.opts, d.Attempts
	if (opts.GiveUp.Bisect || v.Reason == deadletter.Rejected) && d.Alone > 0 {
		attempts = d.Alone // before it was found it failed with others
	}
	of.Version, of.App, of.Worker, of.Epoch = deadletter.Version, opts.App, opts.Worker, d.loop.term.Lease.Epoch
	of.GivenUp = time.Now().UTC()
	of.FirstFailure, of.LastFailure = cmp.Or(d.First.UTC(), of.GivenUp), cmp.Or(d.Latest.UTC(), of.GivenUp)
	of.Reason, of.Attempts, of.Together = v.Reason, attempts, v.Records
	letters := make([]deadletter.Letter, v.Records)
	for i, r := range whole(d.Slice(v.From, v.Until())) {
		letters[i] = of
		letters[i].ID, letters[i].Stream, letters[i].Shard = deadletter.ID(opts.App, r.ID()), d.From.Stream, d.From.Shard
		letters[i].SequenceNumber, letters[i].Position, letters[i].PartitionKey = r.SequenceNumber, r.Position().String(), r.PartitionKey
		letters[i].Data = bytes.Clone(r.Data) // the destination may keep it
		if r.arrival != 0 {
			letters[i].Arrived = r.ArrivalTime().UTC()
		}
	}
	return letters
}

// tellWaits reports once that a record is not given up although it could be.
func (l *shardLoop) tellWaits(d *handover, v failure.Verdict) {
	if d.Held == v.Do {
		return
	}
	d.Held = v.Do
	why := "this worker has handled nothing else since it first failed"
	if v.Do == failure.WaitForRoom {
		why = "that would be too many a minute"
	}
	l.repeated().Warn("a record is not given up yet; it is handled again meanwhile", "seq", l.term.At(), "reason", v.Reason, "why", why)
	emit(l.in, l.in.opts.Events.GiveUpHeld, GiveUpHeld{Stream: d.From.Stream, Shard: d.From.Shard, Records: v.Records, Reason: v.Reason, Why: why})
}

// lettersFailed reports that letters could not be put.
func (l *shardLoop) lettersFailed(d *handover, letters []deadletter.Letter, err error, attempt int, pause time.Duration) {
	l.repeated().Error("the letters of records that are given up could not be put; it is tried again, and the shard waits for that",
		"records", len(letters), "first", letters[0].ID, "attempt", attempt, "next", pause.Round(time.Millisecond), "err", err)
	d.enter(ShardRetrying, attempt, err)
	l.failsHere(d, true)
	emit(l.in, l.in.opts.Events.LettersFailed, LettersFailed{Stream: d.From.Stream, Shard: d.From.Shard, Records: len(letters), Err: err, Attempt: attempt, Next: pause})
}

// tellGivenUp reports that records were given up.
func (l *shardLoop) tellGivenUp(d *handover, v failure.Verdict, letters []deadletter.Letter, err error) {
	l.log().Error("records were dead-lettered; the shard continues", "records", len(letters), "first", letters[0].ID,
		"reason", v.Reason, "attempts", letters[0].Attempts, "err", letters[0].Error)
	l.in.gaveUp.Note(l.term.Lease.Key, len(letters), letters[len(letters)-1].Position, letters[0].Error, time.Now())
	emit(l.in, l.in.opts.Events.GivenUp, GivenUp{
		Stream: d.From.Stream, Shard: d.From.Shard, Records: len(letters), First: letters[0].RecordID(), Reason: v.Reason, Attempts: letters[0].Attempts, Err: err,
	})
}

// failsHere notes the record at which the handler fails, for the shard's status. letters says that
// the letters of records that are given up cannot be put. It is called when the shard has entered
// the state that follows.
func (l *shardLoop) failsHere(d *handover, letters bool) {
	at := d.Failing()
	if at.Letters = letters; letters {
		at.Held = ""
	}
	if d.key != nil {
		d.key.FailsAt(at)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil {
		l.failure.at = at
	}
}
