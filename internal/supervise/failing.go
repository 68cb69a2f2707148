package supervise

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/lease"
)

// Repeated failures of reading are logged once when they have lasted, and once when they are over.
// Each single failure is only a debug line and an event.

const (
	// failingAfter is how long reading has to fail before it is logged.
	failingAfter = 5 * time.Second
	// failingNamed is how many shards of a stream are logged by name at a time; the others are
	// counted.
	failingNamed = 5
)

// fails reports whether reading has failed long enough to be logged. Missing streams, and positions
// at which shards stay, are logged separately.
func (s *Shard) fails(now time.Time, stays bool) bool {
	return s.ReadErr != nil && !s.Trying.IsZero() && now.Sub(s.Trying) >= failingAfter && (!stays || !s.ForAll || s.Throttled) && !s.Missing
}

// Change is that reading a shard has begun to fail for long, or works again.
type Change struct {
	Key   lease.Key
	Err   error // nil when it works again
	Since time.Time
}

// Change returns the change to log for the shard, false if there is none. stays says whether shards
// stay at positions that the service refuses.
func (s *Shard) Change(key lease.Key, now time.Time, stays bool) (Change, bool) {
	switch {
	case !s.ToldFails && s.fails(now, stays):
		return Change{key, s.ReadErr, s.Trying}, true
	case s.ToldFails && s.ReadErr == nil:
		return Change{Key: key}, true
	}
	return Change{}, false
}

// Summary is a summary of changes for the log: a few shards of a stream by name, the others
// counted.
type Summary struct {
	Named []Change
	More  []More
}

// More is a number of shards of a stream that are not named.
type More struct {
	Stream string
	Fail   bool
	Shards int
}

// Summarize sorts changes, and names a few of each stream, of failures and of recoveries apart.
func Summarize(changes []Change) (sum Summary) {
	slices.SortFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Key.Stream, b.Key.Stream), compareBools(a.Err != nil, b.Err != nil), a.Key.Compare(b.Key))
	})
	alike := 0
	for i, c := range changes {
		if i > 0 && (c.Key.Stream != changes[i-1].Key.Stream || (c.Err != nil) != (changes[i-1].Err != nil)) {
			alike = 0
		}
		switch alike++; {
		case alike <= failingNamed:
			sum.Named = append(sum.Named, c)
		case alike == failingNamed+1:
			sum.More = append(sum.More, More{c.Key.Stream, c.Err != nil, 1})
		default:
			sum.More[len(sum.More)-1].Shards++
		}
	}
	return sum
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}
