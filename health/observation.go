package health

import (
	"slices"
	"time"

	"github.com/weir-go/weir/shard"
)

// Unknown is the value of a lag that is not known.
const Unknown time.Duration = -1

// Wait is the reason why a shard has no reader.
type Wait uint8

const (
	// NoWait means that the shard has a reader, or that the reason is not known.
	NoWait Wait = iota
	// ForParents means that the shard's parents are not finished yet. Problems are reported for the
	// parents.
	ForParents
	// Paused means that an operator has paused the application or the stream.
	Paused
	// NoRoom means that all workers are at their limit.
	NoRoom
	// NoWorker means that no worker is alive.
	NoWorker
	// Unassigned means that workers are alive, but the shard has no owner yet.
	Unassigned
	// OwnerSilent means that the owner's heartbeats have stopped. Owner is then "".
	OwnerSilent
	// NoReader means that workers are alive, but none of them reads the shard's stream.
	NoReader
)

// String returns the reason in words, or "" for NoWait.
func (w Wait) String() string {
	return [...]string{"", "waits for its parents", "paused", "no worker has room", "no worker lives", "not assigned yet", "its worker sends no heartbeats", "no live worker reads its stream"}[min(w, NoReader)]
}

// Observation describes a shard at one moment. Zero fields are unknown. For lags, unknown is
// [Unknown].
type Observation struct {
	At time.Time
	// Handled is the handled position, and Saved is the checkpoint. Outside the worker only Saved
	// is known, and Handled is zero.
	Handled, Saved shard.Position
	// ReadLag, HandledLag and SavedLag are 0 if no records wait.
	ReadLag, HandledLag, SavedLag time.Duration
	// Owner is the worker that holds the shard, or "" if there is none.
	Owner string
	Wait  Wait // why it has no owner
	// Stage is the owner's activity since Since, in words such as "in the handler". If there is no
	// owner, Since is when the last heartbeat of the previous owner was seen, or zero. Attempts is
	// the owner's number of consecutive failures, and Err is the last failure. Complains is set if
	// the owner itself reports no progress since Since.
	Stage     string
	Since     time.Time
	Attempts  int
	Err       string
	Complains bool
	// Held is the reason why the checkpoint does not move although records are handled, such as "an
	// open window". Otherwise it is "".
	Held string
	// Retention is the retention of the stream, or 0 if unknown.
	Retention time.Duration
	// Expired reports that records after the checkpoint have left the stream, or may have left it.
	Expired bool
	// Past marks an observation from the history that workers report once a minute. It has no
	// positions, and its lags are within 5 % of the true ones.
	Past bool

	begun *beginnings // set by a Window
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

// Window holds the latest observations of a shard, oldest first. It also remembers when the present
// conditions began, however long ago that was. It is not safe for concurrent use.
type Window struct {
	// Allowed is [Options.Allowed] of the evaluations, 0 for the default.
	Allowed time.Duration
	kept    []Observation
}

// Add adds the observation o. It drops observations that are older than o by more than span, which
// is usually [Options.Window]. If o is not newer than the last observation, Add ignores it. If o
// follows shortly after the last observation, it may replace that one. A window therefore stays
// small, however often Add is called. Observations from history are kept six times as long, until
// later ones cover half the span.
func (w *Window) Add(o Observation, span time.Duration) {
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
	// Keep the first observation of each owner, so that a window shows each change.
	if n > 1 && w.kept[n-1].replaceable(w.kept[n-2], o, span/windowParts) {
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

// All returns the observations, oldest first. The slice is valid until the next Add.
func (w *Window) All() []Observation { return w.kept }

const (
	windowParts = 10
	pastSpans   = 6 // how much longer observations of the past are kept
)
