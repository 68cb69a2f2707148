package target

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/lease"
)

// lookingMost is the maximum value of --look.
const lookingMost = 5 * time.Minute

// LookFlag is the value of the flag --look: how long a command watches the store. By default the
// times of the workers determine the duration.
type LookFlag struct {
	Asked time.Duration
	Given bool
}

// Set implements pflag.Value, together with String and Type.
func (l *LookFlag) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err == nil {
		l.Asked, l.Given = d, true
	}
	return err
}

func (l *LookFlag) String() string {
	if !l.Given {
		return ""
	}
	return l.Asked.String()
}

func (l *LookFlag) Type() string { return "duration" }

func (l *LookFlag) Register(cmd *cobra.Command, what string) { cmd.Flags().Var(l, "look", what) }

// Check returns an error if the value of --look is out of range. If none is true, 0 is allowed.
func (l *LookFlag) Check(none bool) error {
	switch {
	case !l.Given, l.Asked == 0 && none, l.Asked > 0 && l.Asked <= lookingMost:
		return nil
	case none:
		return cli.Usagef("--look %v: want 0 to %v", l.Asked, lookingMost)
	}
	return cli.Usagef("--look %v: want more than 0, up to %v", l.Asked, lookingMost)
}

// UntilDead returns a duration after which each worker that has not ended is known to be alive or
// dead. It is the longest failover time, limited to a minute, but at least two heartbeat intervals.
func (l *LookFlag) UntilDead(v lease.View) time.Duration {
	return l.orLongest(v, lease.DefaultTimes.Failover, func(t lease.Times) time.Duration { return max(min(t.Failover, time.Minute), 2*t.Heartbeat) }) + l.slack()
}

// ForBeats returns a duration in which each live worker has a heartbeat, if all heartbeat intervals
// are 5 s or less.
func (l *LookFlag) ForBeats(v lease.View) time.Duration {
	return l.orLongest(v, 2*lease.DefaultTimes.Heartbeat, func(t lease.Times) time.Duration { return min(2*t.Heartbeat, 10*time.Second) })
}

// slack returns the additional time for the reads themselves.
func (l *LookFlag) slack() time.Duration {
	if l.Given {
		return 0
	}
	return time.Second
}

// orLongest returns the value of the flag, if it was given. Otherwise it returns the longest time
// that any worker needs. Without workers it returns least.
func (l *LookFlag) orLongest(v lease.View, least time.Duration, needs func(lease.Times) time.Duration) time.Duration {
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

// TimesInfo contains the times of a worker in the output for programs.
type TimesInfo struct {
	Beat     int64 `json:"beat_interval_ms"`
	Failover int64 `json:"failover_after_ms"`
	Handoff  int64 `json:"handoff_timeout_ms"`
}

func TimesInfoOf(t lease.Times) TimesInfo {
	return TimesInfo{t.Heartbeat.Milliseconds(), t.Failover.Milliseconds(), t.Handoff.Milliseconds()}
}
