package health

import (
	"time"

	"github.com/weir-go/weir/shard"
)

// Unknown is a lag that is not known.
const Unknown time.Duration = -1

// Wait is the reason why a shard has no reader.
type Wait uint8

const (
	// NoWait: it has a reader, or the reason is not known.
	NoWait Wait = iota
	// ForParents: its parents are not finished yet. Problems are reported for the parents.
	ForParents
	// Paused: an operator has paused the application or the stream.
	Paused
	// NoRoom: all workers are at their limit.
	NoRoom
	// NoWorker: no worker is alive.
	NoWorker
	// Unassigned: workers are alive, but it has no owner yet.
	Unassigned
	// OwnerSilent: its owner sends no heartbeats any more. The observation's Owner is then "".
	OwnerSilent
	// NoReader: workers are alive, but none of them reads the shard's stream.
	NoReader
)

// String returns the reason in words, "" for NoWait.
func (w Wait) String() string {
	return [...]string{"", "waits for its parents", "paused", "no worker has room", "no worker lives", "not assigned yet", "its worker sends no heartbeats", "no live worker reads its stream"}[min(w, NoReader)]
}

// Observation describes a shard at one moment. Zero fields are unknown, except for the lags, where
// unknown is [Unknown].
type Observation struct {
	At time.Time
	// Handled is the handled position, Saved the checkpoint. Outside of the worker only Saved is
	// known, and Handled is zero.
	Handled, Saved shard.Position
	// ReadLag, HandledLag and SavedLag are 0 if no records wait.
	ReadLag, HandledLag, SavedLag time.Duration
	// Owner is the worker that holds the shard, "" if there is none.
	Owner string
	Wait  Wait // why it has no owner
	// Stage is the owner's activity since Since, in words such as "in the handler". Attempts is its
	// number of consecutive failures and Err the last failure. Complains is set if the owner itself
	// reports no progress since Since.
	Stage     string
	Since     time.Time
	Attempts  int
	Err       string
	Complains bool
	// Held is the reason why the checkpoint is held although records are handled, such as "an open
	// window", or "".
	Held string
	// Retention is the retention of the stream, 0 if unknown.
	Retention time.Duration
	// Expired reports that records after the checkpoint have left the stream, or may have.
	Expired bool
}

// progress returns the furthest known position.
func (o Observation) progress() shard.Position {
	if o.Handled.Compare(o.Saved) > 0 {
		return o.Handled
	}
	return o.Saved
}

// lag returns the lag of the remaining work: handled, else saved, else read.
func (o Observation) lag() time.Duration {
	switch {
	case o.HandledLag >= 0:
		return o.HandledLag
	case o.SavedLag >= 0:
		return o.SavedLag
	}
	return max(o.ReadLag, Unknown)
}

// grown returns a lag at a later moment without progress in between: waiting records get older. A
// lag of 0 stays, because newer records are not known.
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

// Window holds the latest observations of a shard, oldest first. It is not safe for concurrent use.
type Window struct{ kept []Observation }

// Add adds an observation, and drops those older than span before it and those beyond what
// [Options.Window] needs. An observation that is not newer than the last is ignored. An observation
// shortly after the last one replaces it, so that a window covers its time at any rate of
// observations.
func (w *Window) Add(o Observation, span time.Duration) {
	n := len(w.kept)
	if n > 0 && !o.At.After(w.kept[n-1].At) {
		return
	}
	// Keep the first observation of each owner: it shows when that owner began.
	if n > 1 && w.kept[n-1].Owner == w.kept[n-2].Owner && o.At.Sub(w.kept[n-2].At) < span/windowParts {
		w.kept[n-1] = o
	} else {
		w.kept = append(w.kept, o)
	}
	old := 0
	for old < len(w.kept)-1 && o.At.Sub(w.kept[old].At) > span {
		old++
	}
	w.kept = append(w.kept[:0], w.kept[old:]...)
}

// All returns the observations, oldest first. The slice is valid until the next Add.
func (w *Window) All() []Observation { return w.kept }

const windowParts = 10
