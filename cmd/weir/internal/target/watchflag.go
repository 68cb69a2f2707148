package target

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/lease"
)

// lookingMost bounds --watch.
const lookingMost = 5 * time.Minute

// WatchFlag is how long a command looks at the store: as long as the workers' own times call for,
// unless --watch says something else.
type WatchFlag struct {
	Asked time.Duration
	Given bool
}

// Set implements the value of a flag, with String and Type.
func (l *WatchFlag) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err == nil {
		l.Asked, l.Given = d, true
	}
	return err
}

func (l *WatchFlag) String() string {
	if !l.Given {
		return ""
	}
	return l.Asked.String()
}

func (l *WatchFlag) Type() string { return "duration" }

func (l *WatchFlag) Register(cmd *cobra.Command, what string) { cmd.Flags().Var(l, "watch", what) }

// Check refuses a --watch beyond reason. Without none, no time is one too.
func (l *WatchFlag) Check(none bool) error {
	switch {
	case !l.Given, l.Asked == 0 && none, l.Asked > 0 && l.Asked <= lookingMost:
		return nil
	case none:
		return cli.Usagef("--watch %v: want 0 to %v", l.Asked, lookingMost)
	}
	return cli.Usagef("--watch %v: want more than 0, up to %v", l.Asked, lookingMost)
}

// UntilDead is long enough to see whether each worker that has not ended lives: the longest
// failover time, but at most a minute, or two beats.
func (l *WatchFlag) UntilDead(v lease.View) time.Duration {
	return l.orLongest(v, lease.DefaultTimes.Failover, func(t lease.Times) time.Duration { return max(min(t.Failover, time.Minute), 2*t.Beat) }) + l.slack()
}

// ForBeats is long enough to see each worker that lives beat, if none beats less often than each 5
// s.
func (l *WatchFlag) ForBeats(v lease.View) time.Duration {
	return l.orLongest(v, 2*lease.DefaultTimes.Beat, func(t lease.Times) time.Duration { return min(2*t.Beat, 10*time.Second) })
}

// slack is for the looks themselves.
func (l *WatchFlag) slack() time.Duration {
	if l.Given {
		return 0
	}
	return time.Second
}

// orLongest returns the requested time, or the longest that any worker needs, or least without
// workers.
func (l *WatchFlag) orLongest(v lease.View, least time.Duration, needs func(lease.Times) time.Duration) time.Duration {
	if l.Given {
		return l.Asked
	}
	for _, w := range v.Workers {
		if !w.Ended {
			least = max(least, needs(w.Times.Or(lease.DefaultTimes)))
		}
	}
	return least
}

// TimesInfo are the times of a worker for programs.
type TimesInfo struct {
	Beat     int64 `json:"beat_interval_ms"`
	Failover int64 `json:"failover_after_ms"`
	Handoff  int64 `json:"handoff_timeout_ms"`
}

func TimesInfoOf(t lease.Times) TimesInfo {
	return TimesInfo{t.Beat.Milliseconds(), t.Failover.Milliseconds(), t.Handoff.Milliseconds()}
}
