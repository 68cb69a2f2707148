package group

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/lease"
)

var (
	// ErrLeaseLost is the cause of a term's context when the lease is no longer valid.
	ErrLeaseLost = errors.New("weir: the lease is lost")
	// ErrStopping is the cause of a term's context when the stop timeout has passed.
	ErrStopping = errors.New("weir: the worker stops")
	// ErrNotSaved is wrapped by a [StopError] that names shards whose progress may not be saved.
	ErrNotSaved = errors.New("weir: progress was not saved")
	// ErrNotReleased is wrapped by a [StopError] if this worker may still hold leases according to
	// the store.
	ErrNotReleased = errors.New("weir: leases were not released")
)

// StopError is returned by [Run] if progress may not be saved, or leases may not be released, when
// Run ends.
type StopError struct {
	App      string
	Failover time.Duration // time after which other workers take the leases over
	Unsaved  []lease.Key   // shards whose handled records are ahead of the stored progress
	Held     []lease.Key   // leases that may still be this worker's in the store
	Unheard  bool          // the store may have assigned leases of which this worker does not know
	Err      error         // the last error of the store, or that the session had ended
}

func (e *StopError) Error() string {
	var said []string
	if len(e.Unsaved) > 0 {
		said = append(said, "the progress of "+some(e.Unsaved)+" was not saved, and the last records there are handled again")
	}
	if len(e.Held) > 0 {
		said = append(said, fmt.Sprintf("the leases of %s were not released, and other workers take them over after %v", some(e.Held), e.Failover))
	}
	if e.Unheard {
		said = append(said, fmt.Sprintf("the store did not confirm the end of its session; if leases were assigned to that session since its last answer, other workers take them over after %v", e.Failover))
	}
	return fmt.Sprintf("weir: application %s: the worker stopped, but the store did not confirm the stop: %s: %v", e.App, strings.Join(said, "; "), e.Err)
}

// Unwrap returns the sentinels that apply, and the store's error.
func (e *StopError) Unwrap() (all []error) {
	if len(e.Unsaved) > 0 {
		all = append(all, ErrNotSaved)
	}
	if len(e.Held) > 0 || e.Unheard {
		all = append(all, ErrNotReleased)
	}
	return append(all, e.Err)
}

// some returns a text with the first few shards.
func some(keys []lease.Key) string {
	const most = 5
	var names []string
	for _, k := range keys[:min(len(keys), most)] {
		names = append(names, k.String())
	}
	if more := len(keys) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// stopError adds the application and the failover time to e and sorts its keys. It returns nil if e
// names no shard and no lease, and Unheard is not set.
func (w *worker) stopError(e StopError) error {
	if len(e.Unsaved) == 0 && len(e.Held) == 0 && !e.Unheard {
		return nil
	}
	e.App, e.Failover = w.cfg.App, w.cfg.Times.Failover
	for _, keys := range []*[]lease.Key{&e.Unsaved, &e.Held} {
		slices.SortFunc(*keys, lease.Key.Compare)
		*keys = slices.Compact(*keys)
	}
	return &e
}

// neverHeard returns the error of a stop in a session without an answered heartbeat. err is the
// result of the farewell. Unless the store accepted the farewell, it may have begun the session and
// assigned leases to it. If the store never answered in any session, neverBegan reports the error
// instead.
func (w *worker) neverHeard(err error) error {
	refused := errors.Is(err, lease.ErrSessionOver) || errors.Is(err, lease.ErrSetup) || errors.Is(err, lease.ErrFormat)
	if err == nil || refused || !w.beaten || w.neverBegan() != nil {
		return w.stopError(StopError{Unsaved: w.unsaved, Err: errSessionEnded})
	}
	return w.stopError(StopError{Unsaved: w.unsaved, Unheard: true, Err: err})
}
