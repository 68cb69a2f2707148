package supervise

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-go/weir/lease"
)

// Worker is a snapshot of one run of a consumer. Times are zero if the event has not happened.
type Worker struct {
	Looked    time.Time // when the heartbeat loop was last active; zero also after its end
	Answered  time.Time // when the last answered heartbeat was sent
	Stopping  time.Time // when the stop began
	Abandoned map[lease.Key]time.Time
	// Unlisted contains the streams that this worker cannot list as leader or deputy, with the
	// start of the failures.
	Unlisted map[string]time.Time
}

// listPatience is how long a leader may fail to list the shards of a stream before it is not ready.
// During that time new shards are not found and a new stream is not read.
const listPatience = time.Minute

// Dead returns the faults that a restart of the process would fix.
func (w *Worker) Dead(now time.Time, times lease.Times) (why []error) {
	// One round of the heartbeat loop waits for the store for at most half of the failover time.
	if stuck := now.Sub(w.Looked); !w.Looked.IsZero() && stuck > 3*times.Heartbeat+times.Failover {
		why = append(why, fmt.Errorf("no heartbeat for %v", stuck.Round(time.Second)))
	}
	for key, since := range w.Abandoned {
		why = append(why, fmt.Errorf("the handler of %s has not returned for %v after its context ended", key, now.Sub(since).Round(time.Second)))
	}
	return why
}

// Unready returns the reasons why the worker is not ready.
func (w *Worker) Unready(now time.Time, times lease.Times) (why []error) {
	switch silent := now.Sub(w.Answered); {
	case !w.Stopping.IsZero():
		why = append(why, errors.New("the worker is stopping"))
	case w.Answered.IsZero():
		why = append(why, errors.New("the worker has not joined the application yet"))
	case silent > times.Failover:
		why = append(why, fmt.Errorf("the store has not answered for %v", silent.Round(time.Second)))
	}
	for _, stream := range slices.Sorted(maps.Keys(w.Unlisted)) {
		if since := now.Sub(w.Unlisted[stream]); since >= listPatience && w.Stopping.IsZero() {
			why = append(why, fmt.Errorf("the shards of stream %s could not be listed for %v", stream, since.Round(time.Second)))
		}
	}
	return why
}
