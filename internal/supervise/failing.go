package supervise

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/lease"
)

// Repeated failures of reading are logged once when they have lasted for some time, and once when
// they are over. A single failure is only a debug line and an event.

const (
	// failingAfter is how long reading must fail before it is logged.
	failingAfter = 5 * time.Second
	// failingNamed is the maximum number of shards of a stream that are logged by name. Others are
	// only counted.
	failingNamed = 5
)

// fails reports whether reading has failed long enough to be logged. Missing streams are logged
// separately, and so are refused positions if shards stay there.
func (s *Shard) fails(now time.Time, stays bool) bool {
	return s.ReadErr != nil && !s.Trying.IsZero() && now.Sub(s.Trying) >= failingAfter && (!stays || !s.ForAll || s.Throttled) && !s.Missing
}

// Change reports that reading of a shard has begun to fail for a long time, or that it works again.
type Change struct {
	Key   lease.Key
	Err   error // nil if reading works again
	Since time.Time
}

// Change returns the change to log for the shard. It returns false if there is none. stays reports
// whether shards stay at refused positions.
func (s *Shard) Change(key lease.Key, now time.Time, stays bool) (Change, bool) {
	switch {
	case !s.ToldFails && s.fails(now, stays):
		return Change{key, s.ReadErr, s.Trying}, true
	case s.ToldFails && s.ReadErr == nil:
		return Change{Key: key}, true
	}
	return Change{}, false
}

// Summary is a summary of changes for the log. It contains a few shards of each stream by name, and
// the number of the others.
type Summary struct {
	Named []Change
	More  []More
}

// More is a number of shards of a stream that are not logged by name.
type More struct {
	Stream string
	Fail   bool
	Shards int
}

// Summarize sorts the changes. For each stream it selects a few failures and a few recoveries by
// name.
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
