// Package failure decides what happens after a call of user code failed. Records can be handled
// again, handled in smaller parts, dead-lettered, or held back. The package also decides whether a
// record may have killed earlier workers. It only decides and counts. Package shardrun waits,
// writes dead letters and reports.
//
// A [Policy] decides what follows one failed call, from its [History]. The [Brake] of a run limits
// how many records are dead-lettered. A [Trial] controls how a term handles records if one of them
// may have killed its earlier owners.
package failure

import (
	"time"

	"github.com/weir-go/weir/deadletter"
)

// Policy determines when a record is dead-lettered. The zero Policy never dead-letters a record.
type Policy struct {
	On        bool          // records may be dead-lettered
	Attempts  int           // failed calls after which a record is dead-lettered; 0 means no limit
	MaxAge    time.Duration // age from which a record is dead-lettered after a failure; 0 means no limit
	Bisect    bool          // a failed batch is handled in halves to find the record
	Patience  time.Duration // how long a failing record waits for another record to succeed
	PerMinute int           // maximum of given-up records per minute; negative means no limit
}

// Call is a failed call of the handler. It includes the history of the record at which the call
// failed.
type Call struct {
	From     int           // index of the first record that is not done
	Records  int           // number of records in the call that are not done, at least 1
	Named    bool          // the handler named the first of them
	Rejected bool          // the handler can never succeed with the record
	Attempts int           // number of calls that failed at the first record
	Alone    int           // the calls of Attempts that had only this record
	Old      int           // number of leading records that are older than MaxAge
	Failing  time.Duration // time since the first failure that counts
	Other    bool          // this worker has handled another record since the first failure
	Room     float64       // number of records that may still be dead-lettered in this minute
}

// Verdict is the decision after a failed call.
type Verdict struct {
	Do      Action
	From    int               // index of the first record to which Do applies
	Records int               // number of records to which Do applies
	Reason  deadletter.Reason // why they are dead-lettered, or could be
}

// Until returns the index after the last record to which the verdict applies.
func (v Verdict) Until() int { return v.From + v.Records }

// Action is the next step for records at which the handler failed.
type Action uint8

const (
	Again    Action = iota // handle all of them again after a pause
	Halve                  // handle the first half after a pause, then the second half
	HalveNow               // handle the first half at once, then the second half
	GiveUp                 // give up the records, and handle the rest
	// WaitForOthers handles the records again after a pause. They could be dead-lettered, but no
	// other record has succeeded either.
	WaitForOthers
	WaitForRoom // also handles them again, because the limit per minute is reached
)

// Judge returns the verdict on a failed call, without the limits of a Brake. A batch that fails as
// a whole is dead-lettered as a whole, except for records younger than MaxAge.
func (p *Policy) Judge(c Call) Verdict {
	v := Verdict{From: c.From, Records: c.Records}
	if !p.On {
		return v
	}
	isolated := c.Named || c.Records == 1
	switch {
	case isolated:
	case c.Rejected:
		v.Do, v.Reason = HalveNow, deadletter.Rejected
		return v
	case p.Bisect:
		v.Do = Halve
		return v
	}
	attempts, records := c.Attempts, c.Records
	if p.Bisect {
		attempts = c.Alone
	}
	if c.Named {
		records = 1
	}
	switch {
	case c.Rejected:
		v.Reason = deadletter.Rejected
	case c.Old > 0:
		v.Reason, records = deadletter.Age, min(records, c.Old)
	case p.Attempts > 0 && attempts >= p.Attempts:
		v.Reason = deadletter.Attempts
	default:
		return v
	}
	v.Records, v.Do = records, p.hold(records, c.Failing, c.Other || c.Rejected, c.Room)
	return v
}

// JudgeKiller returns the next step for a record that has killed its workers. held is how long this
// worker has had the shard. other reports whether this worker has handled other records during that
// time. If so, the record is the probable cause: a broken build would die with every record and
// handle no other record.
func (p *Policy) JudgeKiller(held time.Duration, other bool, room float64) Action {
	return p.hold(1, held, other, room)
}

// hold returns GiveUp, or the reason why records that could be dead-lettered must wait. other is
// set if the worker has handled another record, or if that is not required.
func (p *Policy) hold(records int, failing time.Duration, other bool, room float64) Action {
	switch {
	case !other && failing < p.Patience:
		return WaitForOthers
	case !p.roomFor(records, failing, room):
		return WaitForRoom
	}
	return GiveUp
}

// roomFor reports whether n records may be dead-lettered now. If n exceeds the limit per minute,
// the records first wait. The wait begins at their first failure, and lasts one minute for each
// PerMinute records above the limit.
func (p *Policy) roomFor(n int, failing time.Duration, room float64) bool {
	if p.PerMinute < 0 {
		return true
	}
	more := float64(n-p.PerMinute) / float64(p.PerMinute)
	return room >= float64(min(n, p.PerMinute)) && failing.Minutes() >= more
}

// Failures returns the failure count from which the pause is computed. Failures that only narrow
// down the failing record do not add up, because each concerns other records.
func (p *Policy) Failures(then Action, h *History) int {
	switch {
	case then == Halve:
		return 1
	case p.Bisect && h.Alone > 0:
		return h.Alone
	}
	return h.Attempts
}
