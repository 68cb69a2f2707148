package dashboard

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// arrivalAt returns the arrival time of the record at a position. known is false if the position
// does not contain it.
func arrivalAt(p shard.Position) (at time.Time, known bool) {
	switch p.Kind() {
	case shard.Time:
		return p.Time(), true
	case shard.Sequence:
		_, at, known = timesOf(p.SequenceNumber())
		return at, known
	}
	return time.Time{}, false
}

// placeInWords describes a position by its time, or by its text if the position has no time.
func placeInWords(p shard.Position, now time.Time) string {
	at, known := arrivalAt(p)
	if !known {
		return p.String()
	}
	return at.UTC().Format("2006-01-02 15:04:05") + " UTC, " + ago(now, at)
}

// readAgain estimates the bytes that a step of a reset makes workers read again, from the
// throughput in the history. whole is false if the history does not cover the complete time.
func (p past) readAgain(s change.Step, now time.Time) (bytes float64, whole bool) {
	done, known := arrivalAt(s.From)
	if s.From.IsZero() || !known {
		return 0, s.From.IsZero() || s.From.Kind() == shard.First
	}
	to, known := arrivalAt(s.To)
	switch {
	case s.To.Kind() == shard.Tip || known && !to.Before(done):
		return 0, true
	case !known:
		to = now.Add(-lease.HistoryKept) // the oldest record
	}
	all := p.between(s.Key, minuteOf(to), minuteOf(done))
	for _, m := range all {
		bytes += m.load.Bytes() * time.Minute.Seconds()
	}
	return bytes, known && len(all) > 0 && all[0].minute <= minuteOf(to)+1
}

// amountInWords describes the amount of data that a reset makes workers read again. It returns ""
// if the history shows no amount.
func (p past) amountInWords(steps []change.Step, now time.Time) string {
	sum, all := 0.0, true
	for _, s := range steps {
		if len(s.Actions) == 0 {
			continue
		}
		bytes, whole := p.readAgain(s, now)
		sum, all = sum+bytes, all && whole
	}
	if sum < 1 {
		return ""
	}
	about := "About"
	if !all {
		about = "At least"
	}
	return fmt.Sprintf("%s %s would be read again, by the throughput in the history.", about, observe.Amount(sum))
}
