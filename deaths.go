package weir

import (
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/lease"
)

// This file acts on what a trial says of records that may kill their workers; see
// internal/failure.

const (
	defaultSuspectAfter = 2
	// The shard waits this long before it handles a record again that has killed its worker. The
	// time doubles with each further death.
	suspectPause, suspectPauseMost = time.Minute, 15 * time.Minute
)

// trial is how this term handles what may have killed the owners before, nil when it did not.
func (l *shardLoop) trial() *failure.Trial {
	l.needHandler()
	h := l.handles
	if !h.judged {
		d := l.term.Deaths()
		h.judged, h.trial = true, failure.NewTrial(d, l.in.opts.SuspectAfter, time.Now())
		if h.trial != nil && l.remembers() {
			h.trial.Killed = failure.ParseKilled(d.Beyond)
		}
		if h.trial != nil && (d.Count > 0 || !d.Record.IsZero()) { // not only killed records
			l.tellSuspected(h.trial, "", 0)
		}
	}
	return h.trial
}

// alone prepares a call of the handler. In a trial it separates the next record from the others of
// the delivery, and notes durably that it is begun. It gives up a record that is known to kill, or
// waits before it. It fails when the term is over, and when the lease is wanted back.
func (l *shardLoop) alone(d *handover) error {
	if d.dying != nil { // which comes first
		return nil
	}
	t := l.trial()
	if t == nil {
		l.restOfTrial(d)
		return nil
	}
	if err := l.term.Check(time.Now()); err != nil {
		return err
	}
	for h := l.handles; ; {
		record, id, some := d.NextRecord()
		if !some { // a call for the end alone
			return nil
		}
		if at := l.term.At(); at != t.Deaths.At {
			t.Next(at)
		}
		if !d.pulled && t.Killed.Has(record) {
			l.passOver(d, id)
			continue
		}
		if !d.pulled && t.Clears(record, l.in.opts.SuspectAfter) {
			d.Single()
			return nil
		}
		if t.Over(time.Now()) {
			h.trial = nil
			l.restOfTrial(d)
			return nil
		}
		if failure.Kills(t.Deaths, l.in.opts.SuspectAfter) && (d.pulled || t.Deaths.Record == record) {
			if l.in.brake.Policy.On && !d.pulled {
				if err := l.giveUpKiller(d, t, id); err != nil {
					return err
				}
				continue // with the next record
			}
			if err := l.pauseBefore(t, id); err != nil {
				return err
			}
		}
		return l.begin(d, t, record)
	}
}

// restOfTrial hands over the rest of the delivery in which a trial ended as single records, if keys
// are handled in parallel, because a batch must not have several keys. The next page is handled as
// usual.
func (l *shardLoop) restOfTrial(d *handover) {
	if l.in.opts.Parallel.on() {
		d.Single()
	}
}

// begin notes durably which record is handled next.
func (l *shardLoop) begin(d *handover, t *failure.Trial, record Position) error {
	l.enter(ShardSuspected, 0, nil)
	turn := t.Wants(record, d.pulled)
	if err := l.in.turns.Take(l.term.Reading(), turn); err != nil {
		return err
	}
	if err := l.term.Note(l.term.Reading(), t.Begin(turn, record, l.term.Lease.Epoch)); err != nil {
		l.tried(d, err)
		return err
	}
	if !d.pulled {
		d.Single()
	}
	return nil
}

// tried notes that a call of the handler has returned.
func (l *shardLoop) tried(d *handover, err error) {
	if d.key != nil || l.handles == nil || l.handles.trial == nil {
		return
	}
	t := l.handles.trial
	switch {
	case t.Turn == failure.NoTurn: // the record was not begun as one that may kill
		return
	case err == nil:
		// The next beat has to report both, so that the successor continues the trial if the worker
		// dies before the next record is begun.
		l.term.NoteSoon(t.Survived(l.term.At(), l.term.Lease.Epoch))
		l.term.Advance(t.Deaths.At)
	default:
		l.term.NoteSoon(t.Failed(l.term.Lease.Epoch))
	}
	// The note of the next record comes with what was noted here, or after it.
	t.Turn = failure.NoTurn
	l.in.turns.GiveBack()
}

// pauseBefore waits before a record is handled again that has killed its worker, once in a term.
// How many it killed is kept with the lease, so the pauses grow from owner to owner; no clock is.
func (l *shardLoop) pauseBefore(t *failure.Trial, id string) error {
	if t.Paused {
		return nil
	}
	pause := retry.Pause(suspectPause, suspectPauseMost, t.Deaths.Alone)
	l.tellSuspected(t, id, pause)
	l.enter(ShardSuspected, t.Deaths.Count, failure.KillsError(t.Deaths))
	if err := retry.Wait(l.term.Reading(), pause); err != nil {
		return err
	}
	t.Paused = true
	return nil
}

// giveUpKiller gives the next record up, which has killed its workers.
func (l *shardLoop) giveUpKiller(d *handover, t *failure.Trial, id string) error {
	err := failure.KillsError(t.Deaths)
	if !t.Paused {
		t.Paused = true
		l.tellSuspected(t, id, 0)
	}
	at := d.MoveHead()
	d.Attempts, d.First = t.Deaths.Count, t.Began
	l.enter(ShardSuspected, d.Attempts, err)
	v := failure.Verdict{From: at, Records: 1, Reason: deadletter.Killed}
	for {
		if v.Do = l.in.brake.JudgeKiller(t.Began, time.Now()); v.Do == failure.GiveUp {
			d.dying = &dying{Verdict: v, failure: err, last: err, letters: d.letters(v, err)}
			if err := l.putAll(d); err != nil {
				return err
			}
			l.term.NoteSoon(t.GaveUp(l.term.At(), l.term.Lease.Epoch, l.remembers()))
			return nil
		}
		l.tellWaits(d, v)
		if err := retry.Wait(l.term.Reading(), time.Second); err != nil {
			return err
		}
	}
}

// acquit notes that no record has killed the owners, because there is none after the position at
// which they died. The beat loop calls it for shards that have nothing to handle.
func (l *shardLoop) acquit() {
	d := l.term.Deaths()
	if !failure.Suspicious(d, l.in.opts.SuspectAfter) || d.At != l.term.At() {
		return
	}
	if from := l.pagesNow(); from == nil || from.Status().Buffered > 0 {
		return
	}
	note := failure.WithKilled(lease.Deaths{At: d.At}, failure.ParseKilled(d.Beyond), l.term.Lease.Epoch)
	if note == d {
		return
	}
	// Not while it runs: it may have a record in hand that it has not begun with.
	l.term.NoteParked(note)
}

// tellSuspected reports that owners of the shard have died, with the cause if it is known.
func (l *shardLoop) tellSuspected(t *failure.Trial, id string, next time.Duration) {
	key, d := l.term.Lease.Key, t.Deaths
	what := "workers that had this shard died one after the other at one position; its records are handled one at a time"
	args := []any{"seq", d.At, "died", d.Count}
	if id != "" {
		what = "a record kills the worker that handles it; it is handled again after a pause, or dead-lettered"
		args = append(args, "record", id, "alone", d.Tried)
	}
	if next > 0 {
		args = append(args, "next", next.Round(time.Second))
	}
	l.log().Error(what, args...)
	emit(l.in, l.in.opts.Events.Suspected, Suspected{Stream: key.Stream, Shard: key.Shard, Epoch: l.term.Lease.Epoch, At: d.At, Record: id, Died: d.Count, Alone: d.Tried, Next: next})
}

// remembers reports whether records that were given up may be read again, because a sink keeps the
// positions.
func (l *shardLoop) remembers() bool { return l.in.shards != nil && l.in.shards.Position != nil }

// advance moves the checkpoint to a position, also past records that the sink does not get because
// they are dropped or given up. The names of killed records count only at the position at which
// they are noted, so advance notes them again at the new one. A term that no longer handles records
// one by one lets the names go: by then the sink has passed those records.
func (l *shardLoop) advance(to Position) {
	if l.remembers() && l.namesKilled() && to.Compare(l.term.At()) > 0 {
		d := l.term.Deaths()
		note := lease.Deaths{At: to, Count: d.Count, Record: to}
		l.term.NoteSoon(failure.WithKilled(note, failure.ParseKilled(d.Beyond), l.term.Lease.Epoch))
	}
	l.term.Advance(to)
}

// namesKilled reports whether the last note of the deaths of a term names killed records that the
// next owner needs. A term decides at its first record how it handles records.
func (l *shardLoop) namesKilled() bool {
	if h := l.handles; h != nil && h.judged && h.trial == nil {
		return false
	}
	return failure.ParseKilled(l.term.Deaths().Beyond) != nil
}

// passOver leaves out the next record of a delivery, which was given up before.
func (l *shardLoop) passOver(d *handover, id string) {
	d.PassOver()
	l.log().Info("a record that was dead-lettered before is skipped; it is in its dead letter and not in the sink", "record", id)
}
