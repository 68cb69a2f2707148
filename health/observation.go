package health

import (
	"time"

	"github.com/weir-go/weir/shard"
)

// Unknown is a lag that nobody could find out.
const Unknown time.Duration = -1

// Wait is why nobody reads a shard.
type Wait uint8

const (
	// NoWait: it is read, or nothing is known of a reason.
	NoWait Wait = iota
	// ForParents: its parents are not read to their ends yet. Their troubles are told of them.
	ForParents
	// Paused: an operator has paused the application or the stream.
	Paused
	// NoRoom: no worker may hold more shards.
	NoRoom
	// NoWorker: no worker lives.
	NoWorker
	// Unassigned: workers live, and none has got it yet.
	Unassigned
	// OwnerSilent: the worker that has it does not beat any more. The observation's Owner is then
	// "".
	OwnerSilent
	// NoReader: workers live, and none of them reads the shard's stream.
	NoReader
)

// String is the reason in words, "" for NoWait.
func (w Wait) String() string {
	return [...]string{"", "waits for its parents", "paused", "no worker has room", "no worker lives", "given to nobody yet", "its worker is silent", "no live worker reads its stream"}[min(w, NoReader)]
}

// Observation is what was seen of a shard at one moment. Zero fields say that nothing is known,
// but for the lags, of which that is [Unknown].
type Observation struct {
	At time.Time
	// Handled is where handling stands, Saved the checkpoint. From the outside only Saved is known,
	// and Handled is then left at its zero.
	Handled, Saved shard.Position
	// ReadLag, HandledLag and SavedLag are 0 when nothing waits.
	ReadLag, HandledLag, SavedLag time.Duration
	// Owner is the worker that holds the shard, "" when nobody does.
	Owner string
	Wait  Wait // why nobody does
	// Stage is what the owner is at, in words such as "in the handler", since Since; Attempts are
	// its failures in a row and Err the last of them. Complains says that the owner itself finds
	// that it gets nowhere, since Since.
	Stage     string
	Since     time.Time
	Attempts  int
	Err       string
	Complains bool
	// Held is why the checkpoint stands still although records are handled, such as "an open
	// window", "" when nothing holds it.
	Held string
	// Retention is for how long the stream keeps records, 0 when that is not known.
	Retention time.Duration
	// Expired says that records after the checkpoint have left the stream, or may have.
	Expired bool
}

// progress is the furthest position that is known.
func (o Observation) progress() shard.Position {
	if o.Handled.Compare(o.Saved) > 0 {
		return o.Handled
	}
	return o.Saved
}

// lag is the one that says what is still to do: of what is handled, else saved, else read.
func (o Observation) lag() time.Duration {
	switch {
	case o.HandledLag >= 0:
		return o.HandledLag
	case o.SavedLag >= 0:
		return o.SavedLag
	}
	return max(o.ReadLag, Unknown)
}

// grown is a lag of an observation at a later moment, if nothing was done since: what waits gets
// older. A lag of 0 stays; what came since is not known.
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

// Window keeps the latest observations of a shard, oldest first. It is not safe for concurrent use.
type Window struct{ kept []Observation }

// Add keeps an observation, and forgets those that are older than the span before it and those
// beyond what [Options.Window] needs. One that is not newer than the last is ignored. So that a
// window spans its time at any rate of observations, those that come close after the last replace
// it.
func (w *Window) Add(o Observation, span time.Duration) {
	n := len(w.kept)
	if n > 0 && !o.At.After(w.kept[n-1].At) {
		return
	}
	// The first of an owner stays: since when there is one, or none, is told by it.
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

// All are the observations, oldest first. The slice is the window's own until Add is called again.
func (w *Window) All() []Observation { return w.kept }

const windowParts = 10
