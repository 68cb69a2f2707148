// Package failure decides what follows a call of the user's code that failed: whether a record is
// handled again, handed over in parts, given up, or held back, and whether a record may have killed
// the workers before. It decides and counts. Package shardrun waits, writes letters and reports.
//
// A [Policy] judges one failed call from its [History]. The [Brake] of a run holds giving up back.
// A [Trial] is how a term handles records if one may have killed its owners.
package failure

import (
	"time"

	"github.com/weir-go/weir/deadletter"
)

// Policy says when a record is given up. The zero Policy gives up nothing.
type Policy struct {
	On        bool          // records may be given up
	Attempts  int           // failed calls after which a record is given up; 0 is no bound
	MaxAge    time.Duration // age at which a record is given up after a failure; 0 is no bound
	Bisect    bool          // a failed batch is handed over in halves to find the record
	Patience  time.Duration // how long a failing record waits for another one to succeed
	PerMinute int           // records that a worker gives up in a minute; negative is no bound
}

// Call is a call of the handler that failed, with the history of the record that it failed at.
type Call struct {
	From     int           // index of the first record that is not done
	Records  int           // number of records that were handed over and are not done, at least 1
	Named    bool          // the handler named the first of them
	Rejected bool          // the record can never succeed
	Attempts int           // calls that failed at the first record
	Alone    int           // calls among Attempts that were about this record alone
	Old      int           // number of leading records that are older than MaxAge
	Failing  time.Duration // time since the first failure that counts
	Other    bool          // this worker has handled something else since then
	Room     float64       // records that may still be given up in this minute
}

// Verdict says what follows a failed call.
type Verdict struct {
	Do      Action
	From    int               // index of the first record that Do is about
	Records int               // number of records that Do is about
	Reason  deadletter.Reason // why they are given up, or could be
}

// Until returns the index after the last record that the verdict is about.
func (v Verdict) Until() int { return v.From + v.Records }

// Action is the next step for records that the handler failed at.
type Action uint8

const (
	Again    Action = iota // all are handled again after a pause
	Halve                  // the first half is handled after a pause, then the other half
	HalveNow               // the first half is handled at once, then the other half
	GiveUp                 // the records are given up, and the rest is handled
	// The records could be given up, but nothing else has succeeded either. They are handled again
	// after a pause.
	WaitForOthers
	WaitForRoom // the same, because the limit of a minute is reached
)

// Judge says what follows a failed call, by the policy alone. A batch that fails as a whole is
// given up as a whole, except for records that are younger than MaxAge.
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

// JudgeKiller says what happens to a record that has killed its workers. held is how long this
// worker has had the shard. A worker that has handled something else meanwhile shows that the
// record is at fault: a broken build that dies of every record handles nothing.
func (p *Policy) JudgeKiller(held time.Duration, other bool, room float64) Action {
	return p.hold(1, held, other, room)
}

// hold returns GiveUp, or the reason why records have to wait that could be given up. other says
// that the worker has handled something else, or does not have to.
func (p *Policy) hold(records int, failing time.Duration, other bool, room float64) Action {
	switch {
	case !other && failing < p.Patience:
		return WaitForOthers
	case !p.roomFor(records, failing, room):
		return WaitForRoom
	}
	return GiveUp
}

// roomFor reports whether n records may be given up now. More records than one minute allows wait,
// from their first failure, for as many minutes as they take.
func (p *Policy) roomFor(n int, failing time.Duration, room float64) bool {
	if p.PerMinute < 0 {
		return true
	}
	more := float64(n-p.PerMinute) / float64(p.PerMinute)
	return room >= float64(min(n, p.PerMinute)) && failing.Minutes() >= more
}

// Failures returns the failure count from which the pause is computed. Failures that only narrow
// down which record is at fault do not add up, because each is about other records.
func (p *Policy) Failures(then Action, h *History) int {
	switch {
	case then == Halve:
		return 1
	case p.Bisect && h.Alone > 0:
		return h.Alone
	}
	return h.Attempts
}
