package failure

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// A record that kills its process moves from worker to worker. If several owners of a lease died at
// the same position, the next owner handles the following records one at a time. Before each
// record, it stores the record's position with the lease. If it dies, this shows which record
// killed the process.

const (
	// trialRecords is the number of records that are handled one at a time. A shard accepts this
	// number of records per second. Earlier owners may have handled that many records before they
	// died, without saving their progress.
	trialRecords = 1000
	// trialLasts limits the duration of a trial, for shards with little traffic.
	trialLasts = 10 * time.Minute
)

// Trial controls how a term handles records that may have killed earlier owners.
type Trial struct {
	Deaths  lease.Deaths // the last stored deaths
	Began   time.Time
	Records int    // number of records that are still to be handled one at a time
	Paused  bool   // the pause before the record has passed
	Turn    Turn   // the turn of the process that the trial holds
	Killed  Killed // records that were dead-lettered because they killed their workers
}

// NewTrial begins a trial. It returns nil if the deaths require no trial, which is nearly always
// the case. after is the number of deaths from which records are suspected. If it is negative,
// records are never suspected.
func NewTrial(d lease.Deaths, after int, now time.Time) *Trial {
	if !Suspicious(d, after) {
		return nil
	}
	return &Trial{Deaths: d, Began: now, Records: trialRecords}
}

// Suspicious reports whether the next owner must handle records one at a time: because enough
// owners have died, or because a note of an earlier trial is stored.
func Suspicious(d lease.Deaths, after int) bool {
	return after > 0 && (d.Count >= after || !d.Record.IsZero() || ParseKilled(d.Beyond) != nil)
}

// Kills reports whether the record that killed the owners is known.
func Kills(d lease.Deaths, after int) bool { return d.Alone > 0 && d.Count >= after }

// KillsError returns the reason for dead-lettering a record that killed its workers.
func KillsError(d lease.Deaths) error {
	return fmt.Errorf("weir: %d workers died one after the other at this record or right before it, %d of them while they handled it by itself", d.Count, d.Tried)
}

// Over reports whether the trial has reached its maximum length.
func (t *Trial) Over(now time.Time) bool {
	return t.Records <= 0 || now.Sub(t.Began) >= trialLasts
}

// Next continues with the record after at. All records before at are done. They did not kill the
// owners, so a later record did.
func (t *Trial) Next(at shard.Position) {
	t.Deaths, t.Paused = lease.Deaths{At: at, Count: t.Deaths.Count, Record: at}, false
	t.Records--
}

// Clears reports whether a record is before the record at which the owners died. Owners have
// handled such a record before, so it needs no note. It appears again only because the sink's
// position is before it. The stored deaths stay, because they concern the later record. Some of
// them may be due to another shard whose record the same process tried at the time; see
// [lease.Deaths].Alone.
//
// In two cases, Clears drops the stored deaths and returns false. In the first case, more owners
// have died than these deaths explain. An earlier record may then be the cause, so a note is stored
// before each record again. In the second case, the record at which the owners died has expired.
// The deaths must then not count against the next record.
func (t *Trial) Clears(record shard.Position, after int) bool {
	d := &t.Deaths
	if d.Tried == 0 || d.Record.IsZero() {
		return false
	}
	switch order := record.Compare(d.Record); {
	case order == 0:
		return false
	case order > 0:
		d.Tried, d.Alone = 0, 0
		return false
	case d.Count-d.Tried <= after+1:
		return true
	}
	// Count is reduced to the number of deaths that starts a trial. With a larger Count, the deaths
	// that are stored next would be dropped as well.
	d.Count, d.Tried, d.Alone = after, 0, 0
	return false
}

// Wants returns the turn that a record needs before it is handled alone. A function that pulls gets
// all records, so its deaths count for the first record.
func (t *Trial) Wants(record shard.Position, pulled bool) Turn {
	if !pulled && t.Deaths.Record != record { // the stored deaths concern another record
		t.Deaths.Tried, t.Deaths.Alone = 0, 0
	}
	if t.Deaths.Tried > t.Deaths.Alone {
		return ByItself
	}
	return Beside
}

// Begin returns the note that the owner stores before it handles a record alone. epoch is the
// owner's epoch.
func (t *Trial) Begin(turn Turn, record shard.Position, epoch uint64) lease.Deaths {
	t.Turn, t.Deaths.Trial, t.Deaths.Record = turn, epoch, record
	return t.Note(epoch)
}

// Survived returns the note after the record was handled. at is the checkpoint of the term.
func (t *Trial) Survived(at shard.Position, epoch uint64) lease.Deaths {
	t.Next(furthest(t.Deaths.Record, at))
	return t.Note(epoch)
}

// Failed returns the note after the handler failed at the record and the worker stayed alive.
func (t *Trial) Failed(epoch uint64) lease.Deaths {
	t.Deaths.Trial = 0
	return t.Note(epoch)
}

// GaveUp returns the note after the record was dead-lettered. Earlier deaths do not count for later
// records. remembers is set if the record may be read again.
func (t *Trial) GaveUp(at shard.Position, epoch uint64, remembers bool) lease.Deaths {
	t.Deaths.Count = 0
	if remembers {
		t.Killed = t.Killed.Add(t.Deaths.Record)
	}
	return t.Survived(at, epoch)
}

// Note returns the note about the trial for the owner at the given epoch.
func (t *Trial) Note(epoch uint64) lease.Deaths { return WithKilled(t.Deaths, t.Killed, epoch) }

// furthest returns the later of two positions. A sink that stores positions may make a term read
// records before the checkpoint, so either position may be later.
func furthest(a, b shard.Position) shard.Position {
	if a.Compare(b) < 0 {
		return b
	}
	return a
}
