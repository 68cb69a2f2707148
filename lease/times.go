package lease

import (
	"fmt"
	"strings"
	"time"
)

// Times are the durations that a worker uses. They determine how often it sends heartbeats, and
// when it counts other workers as dead or late while it leads.
type Times struct {
	Heartbeat time.Duration // time between two heartbeats of a worker
	Failover  time.Duration // a session without heartbeats for this long is dead
	Handoff   time.Duration // a handoff that takes longer than this is overdue
}

// DefaultTimes are the times of a worker that does not configure any.
var DefaultTimes = Times{Heartbeat: time.Second, Failover: 5 * time.Second, Handoff: 30 * time.Second}

// longestTime is the maximum of each stored duration.
const longestTime = 24 * time.Hour

// Or returns t, or other if t is zero because the worker did not report its times.
func (t Times) Or(other Times) Times {
	if t == (Times{}) {
		return other
	}
	return t
}

// check returns an error for invalid times.
func (t Times) check() error {
	for _, d := range [...]struct {
		name  string
		value time.Duration
	}{{"the heartbeat interval", t.Heartbeat}, {"the failover time", t.Failover}, {"the handoff timeout", t.Handoff}} {
		if d.value < time.Millisecond || d.value > longestTime || d.value%time.Millisecond != 0 {
			return fmt.Errorf("lease: %s is %v: want whole milliseconds, 1ms to %v", d.name, d.value, longestTime)
		}
	}
	if t.Failover < t.Heartbeat {
		return fmt.Errorf("lease: the failover time %v is shorter than the heartbeat interval %v", t.Failover, t.Heartbeat)
	}
	return nil
}

// clipTimes truncates times to whole milliseconds. It returns zero for invalid times. Reported
// times are only a hint for people, so leases do not depend on them.
func clipTimes(t Times) Times {
	t.Heartbeat, t.Failover, t.Handoff = t.Heartbeat.Truncate(time.Millisecond), t.Failover.Truncate(time.Millisecond), t.Handoff.Truncate(time.Millisecond)
	if t.check() != nil {
		return Times{}
	}
	return t
}

// maxTimesBytes is larger than the text of any valid times.
const maxTimesBytes = 60

// String returns the stored form, such as "1s/5s/30s". It returns "" for the zero Times.
func (t Times) String() string {
	if t == (Times{}) {
		return ""
	}
	return t.Heartbeat.String() + "/" + t.Failover.String() + "/" + t.Handoff.String()
}

// ParseTimes parses the result of [Times.String]. It returns an error for times that are not valid
// in a report.
func ParseTimes(s string) (Times, error) {
	if s == "" {
		return Times{}, nil
	}
	part := strings.SplitN(s, "/", 4)
	if len(s) > maxTimesBytes || len(part) != 3 {
		return Times{}, fmt.Errorf("lease: times %.70q: want three durations as in 1s/5s/30s", s)
	}
	var t Times
	for i, into := range [...]*time.Duration{&t.Heartbeat, &t.Failover, &t.Handoff} {
		d, err := time.ParseDuration(part[i])
		if err != nil {
			return Times{}, fmt.Errorf("lease: times %.70q: %w", s, err)
		}
		*into = d
	}
	if err := t.check(); err != nil {
		return Times{}, fmt.Errorf("%w, in times %.70q", err, s)
	}
	if t.String() != s {
		return Times{}, fmt.Errorf("lease: times %.70q: want them as %s", s, t)
	}
	return t, nil
}

// TimesOf returns the times that apply to a view. These are the leader's times. Without a live
// leader, each time is the maximum over the live workers, so that no live worker counts as dead. A
// worker that did not report its times counts with [DefaultTimes].
func TimesOf(v View) Times {
	var longest Times
	for i := range v.Workers {
		w := &v.Workers[i]
		if w.Ended {
			continue
		}
		t := w.Times.Or(DefaultTimes)
		if w.Session == v.Leader.Session {
			return t
		}
		longest = Times{max(longest.Heartbeat, t.Heartbeat), max(longest.Failover, t.Failover), max(longest.Handoff, t.Handoff)}
	}
	return longest.Or(DefaultTimes)
}
