package health

import "fmt"

// Activity is what a worker does with a shard that it holds, in one of six words. [Reason] has more
// detail. An Activity is a plain value, and all its methods may be called concurrently.
type Activity uint8

const (
	// NoActivity is the activity of a shard without a worker, or of a reason that does not depend
	// on the worker. It is the zero value.
	NoActivity Activity = iota
	// Starting means that the worker took the lease and has requested no records yet.
	Starting
	// Reading means that the worker reads the shard, or that the next read is due soon.
	Reading
	// Handling means that the handler runs, or that dead letters are being stored.
	Handling
	// Retrying means that a read, a call of the handler or the storing of a dead letter failed, and
	// that weir tries it again.
	Retrying
	// Waiting means that records were read or could be read, and wait for something else, such as
	// memory.
	Waiting
	// Stopping means that the shard has ended, or that the worker gives up its lease.
	Stopping
)

var activities = [...]string{
	NoActivity: "", Starting: "starting", Reading: "reading", Handling: "handling",
	Retrying: "retrying", Waiting: "waiting", Stopping: "stopping",
}

// Activities returns the six activities in the order of a shard's life, without [NoActivity]. The
// caller owns the slice.
func Activities() []Activity {
	return []Activity{Starting, Reading, Handling, Retrying, Waiting, Stopping}
}

// String returns the activity in one word, such as "handling", or "" for [NoActivity].
func (a Activity) String() string { return activities[min(int(a), len(activities)-1)] }

// MarshalText returns the word of the activity.
func (a Activity) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText parses the word of an activity. It returns an error for any other text.
func (a *Activity) UnmarshalText(text []byte) error {
	for i, word := range activities {
		if word == string(text) {
			*a = Activity(i) //nolint:gosec // there are seven
			return nil
		}
	}
	return fmt.Errorf("health: no activity %.40q", text)
}
