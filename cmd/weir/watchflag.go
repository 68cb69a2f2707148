package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/lease"
)

// lookingMost bounds --watch.
const lookingMost = 5 * time.Minute

// looking is how long a command looks at the store: as long as the workers' own times call for,
// unless --watch says something else.
type looking struct {
	asked time.Duration
	given bool
}

// Set, String and Type are for the flag.
func (l *looking) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err == nil {
		l.asked, l.given = d, true
	}
	return err
}

func (l *looking) String() string {
	if !l.given {
		return ""
	}
	return l.asked.String()
}

func (l *looking) Type() string { return "duration" }

func (l *looking) register(cmd *cobra.Command, what string) { cmd.Flags().Var(l, "watch", what) }

// check refuses a --watch beyond reason. Without none, no time is one too.
func (l *looking) check(none bool) error {
	switch {
	case !l.given, l.asked == 0 && none, l.asked > 0 && l.asked <= lookingMost:
		return nil
	case none:
		return cli.Usagef("--watch %v: want 0 to %v", l.asked, lookingMost)
	}
	return cli.Usagef("--watch %v: want more than 0, up to %v", l.asked, lookingMost)
}

// untilDead is long enough to see of each worker that has not ended whether it lives: the longest
// of their failover times, at most a minute of it, or two of its beats.
func (l *looking) untilDead(v lease.View) time.Duration {
	return l.orLongest(v, lease.DefaultTimes.Failover, func(t lease.Times) time.Duration { return max(min(t.Failover, time.Minute), 2*t.Beat) }) + l.slack()
}

// forBeats is long enough to see each worker that lives beat, if none beats less often than each 5
// s.
func (l *looking) forBeats(v lease.View) time.Duration {
	return l.orLongest(v, 2*lease.DefaultTimes.Beat, func(t lease.Times) time.Duration { return min(2*t.Beat, 10*time.Second) })
}

// slack is for the looks themselves.
func (l *looking) slack() time.Duration {
	if l.given {
		return 0
	}
	return time.Second
}

// orLongest is what was asked for, else the longest that any worker needs, and least where there is
// none.
func (l *looking) orLongest(v lease.View, least time.Duration, needs func(lease.Times) time.Duration) time.Duration {
	if l.given {
		return l.asked
	}
	for _, w := range v.Workers {
		if !w.Ended {
			least = max(least, needs(w.Times.Or(lease.DefaultTimes)))
		}
	}
	return least
}

// timesInfo are the times of a worker for programs.
type timesInfo struct {
	Beat     int64 `json:"beat_interval_ms"`
	Failover int64 `json:"failover_after_ms"`
	Handoff  int64 `json:"handoff_timeout_ms"`
}

func infoOf(t lease.Times) timesInfo {
	return timesInfo{t.Beat.Milliseconds(), t.Failover.Milliseconds(), t.Handoff.Milliseconds()}
}
