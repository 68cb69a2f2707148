package shardrun

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
)

// afterFailure acts on a failure of the handler that NoteFailure has already noted. It returns the
// pause before the next step. worked is the beginning of the last successful call before this one.
func (d *Handover) afterFailure(err error, of failure.Blame, worked time.Time) time.Duration {
	l := d.loop
	v := d.judge(of, worked)
	pause := retry.Pause(l.in.RetryMin, l.in.RetryMax, l.in.Brake.Policy.Failures(v.Do, &d.History))
	switch v.Do {
	case failure.GiveUp:
		d.failed(failedForGood, err, 0)
		d.dying = &dying{Verdict: v, failure: err, last: err, letters: d.letters(v, err)}
		return 0
	case failure.HalveNow:
		d.Halve(v.Until())
		d.failed(failedInParts, err, 0)
		return 0
	case failure.Halve:
		d.Halve(v.Until())
	case failure.WaitForOthers, failure.WaitForRoom:
		d.tellWaits(v)
	}
	d.enter(health.HandlerFailed, d.Attempts, err)
	d.failed(failedAgain, err, pause)
	return pause
}

// afterDenial acts on a failure at a record that the handler had marked as done, and returns the
// pause before the next step. The failure is reported, but does not count as an attempt of any
// record. Each such call leaves fewer records, so the pause need not grow.
func (d *Handover) afterDenial(err error) time.Duration {
	d.NoteFailure(err, false, time.Now())
	pause := retry.Pause(d.loop.in.RetryMin, d.loop.in.RetryMax, 1)
	d.enter(health.HandlerFailed, d.Attempts, err)
	d.failed(failedAgain, err, pause)
	d.History.Forget()
	return pause
}

// leaveOut begins to dead-letter n records that the handler has not tried because of their age.
func (d *Handover) leaveOut(err error, n int) {
	from := d.MoveHead()
	if d.Err != nil { // it was tried before it got too old
		err = fmt.Errorf("%w; before that: %w", err, d.Err)
	}
	v := failure.Verdict{Do: failure.GiveUp, From: from, Records: n, Reason: deadletter.Age}
	d.dying = &dying{Verdict: v, failure: err, last: err, letters: d.letters(v, err), untried: true}
}

// judge returns what the failure policy decides after a failure.
func (d *Handover) judge(of failure.Blame, worked time.Time) failure.Verdict {
	brake, now := &d.loop.in.Brake, time.Now()
	if !brake.Policy.On {
		return failure.Verdict{}
	}
	failed, old := d.Failed(), 0
	if most := brake.Policy.MaxAge; most > 0 {
		old = olderThan(failed, now.Add(-most))
	}
	return brake.Judge(&d.History, of, len(failed), old, worked, now)
}

// olderThan returns the number of leading records that arrived before the time then.
func olderThan(records []source.Record, then time.Time) (n int) {
	for i := range records {
		if at := records[i].Arrival; at == 0 || at >= then.UnixMilli() {
			break
		}
		n++
	}
	return n
}

// dying are records that are being dead-lettered. They are done once their dead letters are stored.
type dying struct {
	failure.Verdict
	failure error // of the handler
	letters []deadletter.Letter
	tries   int
	last    error // that the dead letters could not be put, or else failure
	untried bool  // the handler left them out, and they do not count for the limit per minute
}

// putLetters tries once to store the dead letters, and returns the pause before the next attempt.
func (d *Handover) putLetters() (time.Duration, next) {
	g, l := d.dying, d.loop
	d.enter(health.StoringDeadLetters, d.Attempts, g.last)
	g.tries++
	put, err := stored(g.letters, l.in.User.PutLetters(&d.ctx, g.letters))
	if err != nil {
		if context.Cause(l.term.Context()) != nil {
			return 0, next{then: over}
		}
		l.in.Counters.DeadLettersFailed.Add(1)
		pause := retry.Pause(l.in.RetryMin, l.in.RetryMax, g.tries)
		g.last = err
		d.lettersFailed(g.letters, err, g.tries, pause)
		return pause, next{}
	}
	if !g.untried {
		l.in.Brake.Took(len(put), time.Now())
	}
	l.in.Counters.RecordsDeadLettered.Add(uint64(len(put)))
	if left := len(g.letters) - len(put); left > 0 {
		l.Log().Warn("records that failed get no dead letter, because they were handled before; the shard continues",
			"records", left, "first", leftOut(g.letters, put), "reason", g.Reason, "err", g.letters[0].Error)
	}
	if len(put) > 0 {
		d.tellGivenUp(g, put)
	}
	d.dying = nil
	d.GaveUp(g.Verdict, len(put))
	return 0, next{}
}

// stored returns the letters that a destination has stored, according to the error of its call. It
// returns an error if the call failed.
func stored(letters []deadletter.Letter, err error) ([]deadletter.Letter, error) {
	left, ok := deadletter.LeftOut(err)
	switch {
	case !ok:
		return nil, err
	case len(left) == 0:
		return letters, nil
	}
	out := map[string]bool{}
	for _, id := range left {
		out[id] = true
	}
	return slices.DeleteFunc(slices.Clone(letters), func(l deadletter.Letter) bool { return out[l.ID] }), nil
}

// leftOut returns the ID of the first letter that was not put.
func leftOut(letters, put []deadletter.Letter) string {
	for i := range letters {
		if i == len(put) || letters[i].ID != put[i].ID {
			return letters[i].ID
		}
	}
	return ""
}

// putAll tries to store the dead letters until that succeeds.
func (d *Handover) putAll() next {
	for d.dying != nil {
		pause, n := d.putLetters()
		if n.then != goOn {
			return n
		}
		if pause > 0 {
			if n := d.loop.pause(pause); n.then != goOn {
				return n
			}
		}
	}
	return next{}
}

// letters makes the dead letters of records that are dead-lettered.
func (d *Handover) letters(v failure.Verdict, err error) []deadletter.Letter {
	l := d.loop
	var of deadletter.Letter
	of.Describe(err, l.in.User.PanicIn(err).Stack)
	attempts := d.Attempts
	if (l.in.GiveUp.Bisect || v.Reason == deadletter.Rejected) && d.Alone > 0 {
		attempts = d.Alone // before it was found it failed with others
	}
	of.Version, of.App, of.Worker, of.Epoch = deadletter.Version, l.in.App, l.in.Worker, l.term.Lease.Epoch
	of.GivenUp = time.Now().UTC()
	of.FirstFailure, of.LastFailure = cmp.Or(d.History.First.UTC(), of.GivenUp), cmp.Or(d.Latest.UTC(), of.GivenUp)
	of.Reason, of.Attempts, of.Together = v.Reason, attempts, v.Records
	letters := make([]deadletter.Letter, v.Records)
	read := d.Slice(v.From, v.Until())
	for i := range read {
		r, to := &read[i], &letters[i]
		*to = of
		to.Stream, to.Shard = d.From.Stream, d.From.Shard
		to.ID = deadletter.ID(l.in.App, to.Stream+"/"+to.Shard+"/"+r.After().String())
		to.SequenceNumber, to.Position, to.PartitionKey = r.SequenceNumber, r.After().String(), r.Key
		to.Data = bytes.Clone(r.Data) // the destination may keep it
		if r.Arrival != 0 {
			to.Arrived = time.UnixMilli(r.Arrival).UTC()
		}
	}
	return letters
}

// tellWaits reports once that records are retried although the policy would dead-letter them.
func (d *Handover) tellWaits(v failure.Verdict) {
	if d.Held == v.Do {
		return
	}
	d.Held = v.Do
	why := health.NoOtherHandled.String()
	if v.Do == failure.WaitForRoom {
		why = health.RateLimited.String()
	}
	l := d.loop
	l.Repeated().Warn("a record is not dead-lettered yet; it is handled again meanwhile", "seq", l.term.At(), "reason", v.Reason, "why", why)
	if ev, of := l.in.Events, &l.term.Lease; ev.On() {
		ev.Emit(event.DeadLetterDelayed{
			Time: time.Now(), Stream: of.Stream, Shard: of.Shard,
			Records: v.Records, Reason: v.Reason, Why: why,
		})
	}
}

// lettersFailed reports that dead letters could not be stored.
func (d *Handover) lettersFailed(letters []deadletter.Letter, err error, attempt int, pause time.Duration) {
	l := d.loop
	l.Repeated().Error("dead letters could not be stored; weir retries, and the shard waits",
		"records", len(letters), "first", letters[0].ID, "attempt", attempt, "next", pause.Round(time.Millisecond), "err", err)
	d.enter(health.HandlerFailed, attempt, err)
	d.failsHere(true)
	if ev, of := l.in.Events, &l.term.Lease; ev.On() {
		ev.Emit(event.DeadLetterFailed{
			Time: time.Now(), Stream: of.Stream, Shard: of.Shard,
			Records: len(letters), Err: err, Attempt: attempt, Next: pause,
		})
	}
}

// tellGivenUp reports that the records of the letters put were dead-lettered.
func (d *Handover) tellGivenUp(g *dying, put []deadletter.Letter) {
	l, n, first := d.loop, len(put), &put[0]
	l.Log().Error("records were dead-lettered; the shard continues", "records", n, "first", first.ID,
		"reason", g.Reason, "attempts", first.Attempts, "err", first.Error)
	l.in.Recent.Note(l.term.Lease.Key, n, put[n-1].Position, first.Error, time.Now())
	if ev, of := l.in.Events, &l.term.Lease; ev.On() {
		ev.Emit(event.DeadLettered{
			Time: time.Now(), Stream: of.Stream, Shard: of.Shard, Records: n, First: first.RecordID(),
			Reason: g.Reason, Attempts: first.Attempts, Err: g.failure,
		})
	}
}
