package target

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/lease"
)

// WatchBeats reads the application until the heartbeat count of every session has changed, or the
// time is over. It returns the sessions whose count has changed. If length is 0, it returns nil,
// which says nothing about the workers.
func WatchBeats(ctx context.Context, store lease.Store, app string, first lease.View, length time.Duration) map[string]bool {
	if length == 0 {
		return nil
	}
	seen := map[string]bool{}
	// After an error, use the observations so far.
	_ = Watch(ctx, store, app, first, length, func(now lease.View) bool {
		for _, w := range BeatBetween(first, now) {
			seen[w.Session] = true
		}
		return len(seen) < NotEnded(first)
	})
	return seen
}

// NotEnded returns the number of sessions that have not ended.
func NotEnded(v lease.View) (n int) {
	for _, w := range v.Workers {
		if !w.Ended {
			n++
		}
	}
	return n
}

// RefuseWhileRunning returns an error if a worker has a heartbeat, or starts, during the given
// time. If every session has ended, it returns nil immediately.
func RefuseWhileRunning(ctx context.Context, t cli.Terminal, store stores.Store, app string, first lease.View, length time.Duration) error {
	if NotEnded(first) == 0 {
		return nil
	}
	t.Note("the store has workers; watching for up to %s whether they run", figures.Duration(length))
	var running []lease.Worker
	var enough time.Time // time by which other workers should have had a heartbeat, after the first one was seen
	err := Watch(ctx, store, app, first, length, func(now lease.View) bool {
		running = BeatBetween(first, now)
		if len(running) > 0 && enough.IsZero() {
			enough = time.Now().Add((&LookFlag{}).ForBeats(first) * 3 / 4)
		}
		return len(running) == 0 || len(running) < NotEnded(first) && time.Now().Before(enough)
	})
	if err != nil {
		return fmt.Errorf("weir could not find out whether workers run: %w", store.Explain(err))
	}
	if len(running) == 0 {
		return nil
	}
	return RunningError{running}
}

// RunningError is the error of a command that must not run while workers are running.
type RunningError struct{ Running []lease.Worker }

func (e RunningError) Error() string {
	return fmt.Sprintf("workers run: %s; stop them first", namesOf(e.Running))
}

// Watch reads the application at intervals, and passes each view to look. It stops when look
// returns false or the time is over. If the last read at the end of that time fails, Watch returns
// the error, because the earlier views then prove nothing.
func Watch(ctx context.Context, store lease.Store, app string, first lease.View, length time.Duration, look func(lease.View) (more bool)) error {
	late := time.NewTimer(length)
	defer late.Stop()
	ticker := time.NewTicker(max(min(200*time.Millisecond, length/10), 20*time.Millisecond))
	defer ticker.Stop()
	leases := first.Leases
	for last := false; ; {
		select {
		case <-ticker.C:
		case <-late.C:
			last = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		call, cancel := context.WithTimeout(ctx, 5*time.Second)
		now, err := store.View(call, app, first.Revision)
		cancel()
		if err == nil {
			if now.Same {
				now.Leases = leases
			}
			if !look(now) {
				return nil
			}
		}
		if last {
			return err
		}
	}
}

// BeatBetween returns the sessions whose heartbeat count changed between two views, and those that
// are new in the second view. It omits ended sessions. The result is sorted by name.
func BeatBetween(first, now lease.View) []lease.Worker {
	before := map[string]uint64{}
	for _, w := range first.Workers {
		before[w.Session] = w.Heartbeats
	}
	var moved []lease.Worker
	for _, w := range now.Workers {
		if beat, known := before[w.Session]; !w.Ended && (!known || beat != w.Heartbeats) {
			moved = append(moved, w)
		}
	}
	slices.SortFunc(moved, func(a, b lease.Worker) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Session, b.Session))
	})
	return moved
}

// namesOf returns a list of workers' names, and shortens a long list.
func namesOf(workers []lease.Worker) string {
	const most = 5
	var names []string
	for _, w := range workers[:min(len(workers), most)] {
		names = append(names, cmp.Or(w.Name, w.Session))
	}
	if more := len(workers) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %s more", figures.Count(more)))
	}
	return strings.Join(names, ", ")
}
