// Package backlog computes the lags of a shard. They depend on the oldest record that is not
// handled, and on the oldest record whose progress is not saved.
package backlog

import (
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// Log stores the arrival times of records that were passed to the handler and whose progress is not
// saved. The zero value is ready to use. It is not safe for concurrent use.
type Log struct{ stretches []stretch }

// stretch is a run of records.
type stretch struct {
	first time.Time      // arrival time of the first record
	upTo  shard.Position // position after the last record
}

// most is the maximum number of stretches. If there are more, neighbours are merged. All records of
// a merged stretch then count as old as its oldest record.
const most = 64

// Add adds records that will be handled. first is the arrival time of the first record, and upTo is
// the position after the last one. Add ignores records that were added before.
func (l *Log) Add(first time.Time, upTo shard.Position) {
	n := len(l.stretches)
	if n > 0 && upTo.Compare(l.stretches[n-1].upTo) <= 0 {
		return
	}
	if n == most {
		for i := range most / 2 {
			l.stretches[i] = stretch{earlier(l.stretches[2*i].first, l.stretches[2*i+1].first), l.stretches[2*i+1].upTo}
		}
		l.stretches = l.stretches[:most/2]
	}
	l.stretches = append(l.stretches, stretch{first, upTo})
}

// Saved removes the records before a position.
func (l *Log) Saved(p shard.Position) {
	n := l.before(p)
	if n == 0 {
		return
	}
	l.stretches = l.stretches[:copy(l.stretches, l.stretches[n:])]
	if len(l.stretches) == 0 && cap(l.stretches) > 4 {
		l.stretches = nil
	}
}

// Oldest returns the arrival time of the oldest record at or after a position, or zero if there is
// none. The result may be earlier than the true time, by at most the time that one stretch spans.
func (l *Log) Oldest(from shard.Position) (oldest time.Time) {
	for _, s := range l.stretches[l.before(from):] {
		oldest = earlier(oldest, s.first)
	}
	return oldest
}

// before returns the number of stretches that end at or before a position.
func (l *Log) before(p shard.Position) int {
	n := 0
	for n < len(l.stretches) && l.stretches[n].upTo.Compare(p) <= 0 {
		n++
	}
	return n
}

// earlier returns the earlier of two times. It ignores a zero time.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Unknown is the value of an unknown lag.
const Unknown time.Duration = -1

// Lags contains how far a shard is behind the tip of the stream. A lag is [Unknown] if it is not
// known.
type Lags struct{ Read, Handled, Saved time.Duration }

// Now returns the lags of a shard with the reading status r. The lag in the last answer grows until
// the next answer. If reads fail before the first answer, the lag is at least the time for which
// they have failed. If only records of the first answer have arrived, and not yet its lag, the lag
// is the age of the oldest of them that waits. This is too large by at most the time between the
// first and the last record of the answer.
//
// undone is the arrival time of the oldest record that is not handled. unsaved is the arrival time
// of the oldest record whose progress is not saved. Each is zero if there is no such record.
func Now(r source.Status, undone, unsaved, now time.Time) Lags {
	lags := Lags{Unknown, Unknown, Unknown}
	if r.Behind >= 0 {
		lags.Read = r.Behind
		if r.Doing != health.AtTip && r.Doing != health.Subscribed && !r.Trying.IsZero() {
			lags.Read += max(0, now.Sub(r.Trying))
		}
	}
	// If reads have failed since before the first answer, every record that has arrived since then
	// is unread.
	if r.Behind < 0 && r.Err != nil && !r.Trying.IsZero() {
		lags.Read = max(0, now.Sub(r.Trying))
	}
	age := func(oldest time.Time) time.Duration {
		if oldest.IsZero() {
			return Unknown
		}
		return max(0, now.Sub(oldest))
	}
	waits := age(earlier(undone, r.Oldest))
	if lags.Read < 0 {
		lags.Read = waits
	}
	lags.Handled = max(lags.Read, waits)
	lags.Saved = max(lags.Handled, age(unsaved))
	return lags
}
