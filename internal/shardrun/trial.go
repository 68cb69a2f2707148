package shardrun

import (
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/retry"
)

// suspectPause is the pause before a record that has killed its worker is handled again. It doubles
// with each further death, up to suspectPauseMost.
const suspectPause, suspectPauseMost = time.Minute, 15 * time.Minute

// trial controls how a loop handles, in its current term, records that may have killed earlier
// owners; see [failure.Trial].
type trial struct {
	failure.Trial
	loop *Loop
}

// trialOf returns the trial of the loop's term, and nil if no record is suspected.
func trialOf(l *Loop) *trial {
	l.needSession()
	s := l.session
	if s.judged {
		return s.trial
	}
	s.judged = true
	d := l.term.Deaths()
	of := failure.NewTrial(d, l.in.SuspectAfter, time.Now())
	if of == nil {
		return nil
	}
	s.trial = &trial{*of, l}
	if l.in.Sink { // the records may be read again
		s.trial.Killed = failure.ParseKilled(d.Beyond)
	}
	if d.Count > 0 || !d.Record.IsZero() { // not only killed records
		s.trial.tellSuspected("", 0)
	}
	return s.trial
}

// alone prepares a call of the handler. In a trial it makes the next record a part by itself, and
// saves with the lease that the record is begun. If the record is known to kill its workers, alone
// dead-letters the record, or waits first.
func alone(d *Handover) next {
	if d.dying != nil { // which comes first
		return next{}
	}
	l := d.loop
	t := trialOf(l)
	if t == nil {
		restOfTrial(d)
		return next{}
	}
	if l.term.Check(time.Now()) != nil {
		return next{then: over}
	}
	for {
		record, id, some := d.NextRecord()
		if !some { // a call for the end alone
			return next{}
		}
		if at := l.term.At(); at != t.Deaths.At {
			t.Next(at)
		}
		if d.pull == nil && t.Killed.Has(record) {
			d.PassOver()
			l.Log().Info("a record that was dead-lettered before is skipped; it is in its dead letter and not in the sink", "record", id)
			continue
		}
		if d.pull == nil && t.Clears(record, l.in.SuspectAfter) {
			d.Single()
			return next{}
		}
		if t.Over(time.Now()) {
			l.session.trial = nil
			restOfTrial(d)
			return next{}
		}
		if failure.Kills(t.Deaths, l.in.SuspectAfter) && (d.pull != nil || t.Deaths.Record == record) {
			if l.in.Brake.Policy.On && d.pull == nil {
				if n := t.giveUp(d, id); n.then != goOn {
					return n
				}
				continue // with the next record
			}
			if n := t.pause(id); n.then != goOn {
				return n
			}
		}
		return t.begin(d, record)
	}
}

// restOfTrial is called for a batch without a trial. If keys are handled in parallel, a trial has
// ended within the page. The rest of the page is then handled record by record, because a batch
// must not have several keys. The next page is handled as usual.
func restOfTrial(d *Handover) {
	if d.loop.in.Parallel() {
		d.Single()
	}
}

// begin saves with the lease which record is handled next.
func (t *trial) begin(d *Handover, record Position) next {
	l := t.loop
	l.enter(health.Suspected, 0, nil)
	turn := t.Wants(record, d.pull != nil)
	if l.in.Turns.Take(l.term.Reading(), turn) != nil {
		return next{then: over}
	}
	if err := l.term.Note(l.term.Reading(), t.Begin(turn, record, d.Epoch())); err != nil {
		tried(d, err)
		return next{then: over}
	}
	if d.pull == nil {
		d.Single()
	}
	return next{}
}

// tried notes that a call of the handler has returned.
func tried(d *Handover, err error) {
	l := d.loop
	if d.key != nil || l.session == nil || l.session.trial == nil {
		return
	}
	t := l.session.trial
	switch {
	case t.Turn == failure.NoTurn: // the record was not begun as one that may kill
		return
	case err == nil:
		// The next heartbeat has to report both the note and the position. If this worker then dies
		// before it begins the next record, the next owner continues the trial.
		l.term.NoteSoon(t.Survived(l.term.At(), d.Epoch()))
		l.term.Advance(t.Deaths.At)
	default:
		l.term.NoteSoon(t.Failed(d.Epoch()))
	}
	// The note about the next record is saved together with this note, or after it.
	t.Turn = failure.NoTurn
	l.in.Turns.GiveBack()
}

// pause waits before a record that has killed workers is handled again. It does this once in a
// term. The lease stores how many workers the record killed, so the pause grows from owner to
// owner.
func (t *trial) pause(id string) next {
	if t.Paused {
		return next{}
	}
	pause := retry.Pause(suspectPause, suspectPauseMost, t.Deaths.Alone)
	t.tellSuspected(id, pause)
	t.loop.enter(health.Suspected, t.Deaths.Count, failure.KillsError(t.Deaths))
	n := t.loop.pause(pause)
	t.Paused = n.then == goOn
	return n
}

// giveUp dead-letters the next record, which has killed its workers.
func (t *trial) giveUp(d *Handover, id string) next {
	l, err := t.loop, failure.KillsError(t.Deaths)
	if !t.Paused {
		t.Paused = true
		t.tellSuspected(id, 0)
	}
	at := d.MoveHead()
	d.Attempts, d.First = t.Deaths.Count, t.Began
	l.enter(health.Suspected, d.Attempts, err)
	v := failure.Verdict{From: at, Records: 1, Reason: deadletter.Killed}
	for {
		if v.Do = l.in.Brake.JudgeKiller(t.Began, time.Now()); v.Do == failure.GiveUp {
			d.dying = &dying{Verdict: v, failure: err, last: err, letters: d.letters(v, err)}
			n := d.putAll()
			if n.then == goOn {
				l.term.NoteSoon(t.GaveUp(l.term.At(), d.Epoch(), l.in.Sink))
			}
			return n
		}
		d.tellWaits(v)
		if n := l.pause(time.Second); n.then != goOn {
			return n
		}
	}
}

// tellSuspected reports that owners of the shard have died, and which record is the cause if that
// is known.
func (t *trial) tellSuspected(id string, pause time.Duration) {
	l, d := t.loop, t.Deaths
	what := "workers died one after the other at the same position of this shard; the records of the shard are handled one at a time to find the cause"
	args := []any{"seq", d.At, "died", d.Count}
	if id != "" {
		what = "a record kills the worker that handles it; it is handled again after a pause, or dead-lettered"
		args = append(args, "record", id, "alone", d.Tried)
	}
	if pause > 0 {
		args = append(args, "next", pause.Round(time.Second))
	}
	l.Log().Error(what, args...)
	if ev, of := l.in.Events, &l.term.Lease; ev.On() {
		ev.Emit(event.Suspected{
			Time: time.Now(), Stream: of.Stream, Shard: of.Shard, Epoch: of.Epoch, At: d.At,
			Died: d.Count, DiedOneByOne: d.Tried, Record: id, Next: pause,
		})
	}
}

// namesKilled reports whether the last note of the deaths of a term names killed records that the
// next owner needs. At its first record, a term decides whether it needs a trial. Without a trial,
// the names are not needed.
func namesKilled(l *Loop) bool {
	if s := l.session; s != nil && s.judged && s.trial == nil {
		return false
	}
	return failure.ParseKilled(l.term.Deaths().Beyond) != nil
}
