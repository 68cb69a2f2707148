package queue

import (
	"sync"
	"time"
)

// ages computes the age of answers when they are read. While a process is frozen, an answer waits
// in the buffers of its connection, and the holds of its records run out. The Date header shows the
// delay: it is further in the past than in other answers. The clocks of the service and of this
// machine may differ. ages is safe for concurrent use.
type ages struct {
	born time.Time

	mu    sync.Mutex    // guards the fields below
	known bool          // the fields below are set
	least time.Duration // smallest difference between our clock and a Date
	since time.Time     // when least was last changed
}

// of returns the age of an answer with a Date at the time now. It returns 0 for an age of up to 1.1
// s, because a Date has whole seconds.
func (a *ages) of(date, now time.Time) time.Duration {
	if a == nil || date.IsZero() {
		return 0
	}
	// Only the monotonic clock counts, so that a change of the wall clock makes no answer old.
	d := a.born.Round(0).Add(now.Sub(a.born)).Sub(date)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known { // clocks drift
		a.least += now.Sub(a.since) / 2000
	}
	a.since = now
	if !a.known || d < a.least {
		a.known, a.least = true, d
	}
	if age := d - a.least; age > 1100*time.Millisecond {
		return age
	}
	return 0
}
