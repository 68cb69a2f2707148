package failure

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// A record that kills the process that handles it goes from worker to worker. When owners of a
// lease have died one after the other at one position, the next one handles the following records
// one at a time. Before each it saves with the lease which record it is, so that a death proves
// which record killed the process.

const (
	// trialRecords is how many records are handled by themselves: as many as a shard takes in a
	// second, which owners may have handled before they died and not saved.
	trialRecords = 1000
	// trialLasts bounds that in time, for shards with little traffic.
	trialLasts = 10 * time.Minute
)

// Trial is how a term handles what may have killed the owners before.
type Trial struct {
	Deaths  lease.Deaths // as they were noted last
	Began   time.Time
	Records int    // records that are still handled by themselves
	Paused  bool   // the pause before the record was made
	Turn    Turn   // the turn of the process that the trial holds
	Killed  Killed // records that were given up because they killed their workers
}

// NewTrial begins a trial. It returns nil if the deaths do not ask for one: nearly always. after is
// the number of deaths from which on records are suspected; negative is never.
func NewTrial(d lease.Deaths, after int, now time.Time) *Trial {
	if !Suspicious(d, after) {
		return nil
	}
	return &Trial{Deaths: d, Began: now, Records: trialRecords}
}

// Suspicious reports whether enough owners have died that the next handles records one at a time.
func Suspicious(d lease.Deaths, after int) bool {
	return after > 0 && (d.Count >= after || !d.Record.IsZero() || ParseKilled(d.Beyond) != nil)
}

// Kills reports whether it is known which record the owners have died of.
func Kills(d lease.Deaths, after int) bool { return d.Alone > 0 && d.Count >= after }

// KillsError returns the reason why a record is given up that every worker died of.
func KillsError(d lease.Deaths) error {
	return fmt.Errorf("weir: %d workers died one after the other at this record or right before it, %d of them while they handled it by itself", d.Count, d.Tried)
}

// Over reports whether the trial has lasted for as long as it may.
func (t *Trial) Over(now time.Time) bool {
	return t.Records <= 0 || now.Sub(t.Began) >= trialLasts
}

// Next begins with the record after at: all records before it are done. As these did not kill the
// owners, a later one did.
func (t *Trial) Next(at shard.Position) {
	t.Deaths, t.Paused = lease.Deaths{At: at, Count: t.Deaths.Count, Record: at}, false
	t.Records--
}

// Clears reports whether a record comes before the one at which the owners died. They had handled
// it, so it needs no note. It is read again if the position of a sink is before it, and the deaths
// noted for the later record stay, also those that came while other shards tried a record. If more
// owners have died than these deaths explain, such a record may have killed them: Clears drops the
// deaths, and each record is noted again. If the record at which they died has expired, Clears
// drops its deaths, so that they are not held against the next record.
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
	// The deaths that stay in Count are explained. Otherwise the next ones would be dropped as
	// well.
	d.Count, d.Tried, d.Alone = after, 0, 0
	return false
}

// Wants returns the turn that a record needs before it is handled by itself. A function that pulls
// gets all records, so its deaths count for the first record.
func (t *Trial) Wants(record shard.Position, pulled bool) Turn {
	if !pulled && t.Deaths.Record != record { // the note is about another record
		t.Deaths.Tried, t.Deaths.Alone = 0, 0
	}
	if t.Deaths.Tried > t.Deaths.Alone {
		return ByItself
	}
	return Beside
}

// Begin returns the note that the owner of an epoch makes before it handles a record by itself.
func (t *Trial) Begin(turn Turn, record shard.Position, epoch uint64) lease.Deaths {
	t.Turn, t.Deaths.Trial, t.Deaths.Record = turn, epoch, record
	return t.Note(epoch)
}

// Survived returns the note that the record was handled. at is the checkpoint of the term.
func (t *Trial) Survived(at shard.Position, epoch uint64) lease.Deaths {
	t.Next(furthest(t.Deaths.Record, at))
	return t.Note(epoch)
}

// Failed returns the note that the worker did not die of the record, although it failed.
func (t *Trial) Failed(epoch uint64) lease.Deaths {
	t.Deaths.Trial = 0
	return t.Note(epoch)
}

// GaveUp returns the note that the record was given up, so no owner has died of what follows.
// remembers says that the record may be read again.
func (t *Trial) GaveUp(at shard.Position, epoch uint64, remembers bool) lease.Deaths {
	t.Deaths.Count = 0
	if remembers {
		t.Killed = t.Killed.Add(t.Deaths.Record)
	}
	return t.Survived(at, epoch)
}

// Note returns the note that the owner of an epoch makes of the trial.
func (t *Trial) Note(epoch uint64) lease.Deaths { return WithKilled(t.Deaths, t.Killed, epoch) }

// furthest returns the position that is further in the shard. A sink may be behind the checkpoint.
func furthest(a, b shard.Position) shard.Position {
	if a.Compare(b) < 0 {
		return b
	}
	return a
}
