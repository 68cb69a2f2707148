package lease

import (
	"fmt"
	"strings"
	"time"
)

// Times are the durations of a worker: how often it beats, and what it judges others by while it
// leads.
type Times struct {
	Beat     time.Duration // between two beats of a worker
	Failover time.Duration // a session silent for this long is dead
	Handoff  time.Duration // a wish older than this is overdue
}

// DefaultTimes are those of a worker that was told nothing else.
var DefaultTimes = Times{Beat: time.Second, Failover: 5 * time.Second, Handoff: 30 * time.Second}

// longestTime bounds what a store keeps of each duration.
const longestTime = 24 * time.Hour

// Or is t, or other where t is zero: what a worker that did not say its times is taken to have.
func (t Times) Or(other Times) Times {
	if t == (Times{}) {
		return other
	}
	return t
}

// check refuses times that no worker can have.
func (t Times) check() error {
	for _, d := range [...]struct {
		name  string
		value time.Duration
	}{{"the beat interval", t.Beat}, {"the failover time", t.Failover}, {"the hand-off timeout", t.Handoff}} {
		if d.value < time.Millisecond || d.value > longestTime || d.value%time.Millisecond != 0 {
			return fmt.Errorf("lease: %s is %v: want whole milliseconds, 1ms to %v", d.name, d.value, longestTime)
		}
	}
	if t.Failover < t.Beat {
		return fmt.Errorf("lease: the failover time %v is shorter than the beat interval %v", t.Failover, t.Beat)
	}
	return nil
}

// clipTimes makes times whole milliseconds, and those that no worker can have zero: people lose a
// hint by it, and nobody a lease.
func clipTimes(t Times) Times {
	t.Beat, t.Failover, t.Handoff = t.Beat.Truncate(time.Millisecond), t.Failover.Truncate(time.Millisecond), t.Handoff.Truncate(time.Millisecond)
	if t.check() != nil {
		return Times{}
	}
	return t
}

// maxTimesBytes is more than the text of any times has.
const maxTimesBytes = 60

// String is how stores keep times: "1s/5s/30s", "" for the zero Times.
func (t Times) String() string {
	if t == (Times{}) {
		return ""
	}
	return t.Beat.String() + "/" + t.Failover.String() + "/" + t.Handoff.String()
}

// ParseTimes reads what [Times.String] returns. Anything that no report can have said is an error.
func ParseTimes(s string) (Times, error) {
	if s == "" {
		return Times{}, nil
	}
	part := strings.SplitN(s, "/", 4)
	if len(s) > maxTimesBytes || len(part) != 3 {
		return Times{}, fmt.Errorf("lease: times %.70q: want three durations as in 1s/5s/30s", s)
	}
	var t Times
	for i, into := range [...]*time.Duration{&t.Beat, &t.Failover, &t.Handoff} {
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

// TimesOf are the times that a view is judged by: those of the leader that it names, else the
// longest of each that any of its workers has, so that nobody counts as dead who may live.
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
		longest = Times{max(longest.Beat, t.Beat), max(longest.Failover, t.Failover), max(longest.Handoff, t.Handoff)}
	}
	return longest.Or(DefaultTimes)
}
