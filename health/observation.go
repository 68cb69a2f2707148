package health

import (
	"slices"
	"time"

	"github.com/weir-go/weir/shard"
)

// Unknown is the value of a lag that is not known.
const Unknown time.Duration = -1

// Observation describes a shard at one moment. Zero fields are unknown. For lags, unknown is
// [Unknown].
type Observation struct {
	// At is when the shard was observed. It must be set.
	At time.Time
	// Handled is the handled position, and Saved is the checkpoint. An observer outside the worker
	// knows only Saved, and leaves Handled zero.
	Handled, Saved shard.Position
	// ReadLag, HandledLag and SavedLag are 0 if no records wait.
	ReadLag, HandledLag, SavedLag time.Duration
	// Owner is the worker that holds the shard, or "" if there is none.
	Owner string
	// Reason is what the owner has been doing since Since, such as [InHandler]. If there is no
	// owner, Reason is why there is none, such as [NoWorker], and Since is when the last heartbeat
	// of the previous owner was seen, or zero. Detail completes the words of Reason. For
	// [OtherReason] it is the text that the worker reported.
	Reason Reason
	Detail string
	Since  time.Time
	// Attempts is the owner's number of consecutive failures, and Err is the last failure.
	// Complains is set if the owner itself reports no progress since Since.
	Attempts  int
	Err       string
	Complains bool
	// Held is why the checkpoint does not move although records are handled, as given to
	// weir.Puller.Hold, such as "by an open window". Otherwise it is "".
	Held string
	// Retention is the retention of the stream, or 0 if unknown.
	Retention time.Duration
	// Expired reports that records after the checkpoint have left the stream, or may have left it.
	Expired bool
	// Past marks an observation from the history that workers report once a minute. It has no
	// positions, and its lags are within 5 % of the true ones.
	Past bool

	begun *beginnings // set by Observations.Add
}

// progress returns the furthest known position.
func (o Observation) progress() shard.Position {
	if o.Handled.Compare(o.Saved) > 0 {
		return o.Handled
	}
	return o.Saved
}

// lag returns the lag of the remaining work: the handled lag, else the checkpoint lag, else the
// read lag.
func (o Observation) lag() time.Duration {
	switch {
	case o.HandledLag >= 0:
		return o.HandledLag
	case o.SavedLag >= 0:
		return o.SavedLag
	}
	return max(o.ReadLag, Unknown)
}

// grown returns a lag at a later moment, assuming no progress: waiting records get older. A lag of
// 0 does not grow, because it is unknown whether newer records exist.
func grown(lag time.Duration, since time.Duration) time.Duration {
	if lag <= 0 || since <= 0 {
		return max(lag, Unknown)
	}
	if lag > maxLag-since {
		return maxLag
	}
	return lag + since
}

const maxLag = 1<<63 - 1

// Observations holds the latest observations of a shard, oldest first. It also remembers when the
// present conditions began, however long ago that was. The zero value is empty and ready to use.
// It is not safe for concurrent use.
type Observations struct {
	// Allowed is [Options.Allowed] of the evaluations, 0 for the default.
	Allowed time.Duration
	kept    []Observation
}

// Add adds the observation o. It drops observations that are older than o by more than span, which
// is usually [Options.TrendOver]. If o is not newer than the last observation, Add ignores it. If o
// follows shortly after the last observation, it may replace that one. The memory therefore stays
// small, however often Add is called. Observations from history are kept six times as long, until
// later ones cover half the span.
func (w *Observations) Add(o Observation, span time.Duration) {
	n := len(w.kept)
	if n > 0 && !o.At.After(w.kept[n-1].At) {
		return
	}
	allowed := Options{Allowed: w.Allowed}.Defaults().Allowed
	if n == 0 {
		o.begun = begin(o, allowed)
	} else {
		o.begun = w.kept[n-1].then(o, allowed)
	}
	// Keep the first observation of each owner, so that each change is kept.
	if n > 1 && w.kept[n-1].replaceable(w.kept[n-2], o, span/trendParts) {
		w.kept[n-1] = o
	} else {
		w.kept = append(w.kept, o)
	}
	if o.Past { // all before it are, too
		for len(w.kept) > 1 && o.At.Sub(w.kept[0].At) > pastSpans*span {
			w.kept = w.kept[1:]
		}
		return
	}
	covered := slices.ContainsFunc(w.kept, func(k Observation) bool {
		return !k.Past && o.At.Sub(k.At) >= span/2
	})
	last := w.kept[len(w.kept)-1]
	w.kept = slices.DeleteFunc(w.kept[:len(w.kept)-1], func(k Observation) bool {
		if k.Past {
			return covered || o.At.Sub(k.At) > pastSpans*span
		}
		return o.At.Sub(k.At) > span
	})
	w.kept = append(w.kept, last)
}

// replaceable reports whether the observation next may replace o. before is the observation before
// o.
func (o Observation) replaceable(before, next Observation, apart time.Duration) bool {
	return o.Owner == before.Owner && o.Past == next.Past && next.At.Sub(before.At) < apart
}

// All returns the observations, oldest first. The slice belongs to w: the caller must not change
// it, and it is valid until the next Add.
func (w *Observations) All() []Observation { return w.kept }

const (
	trendParts = 10
	pastSpans  = 6 // how much longer observations of the past are kept
)
