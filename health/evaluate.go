package health

import (
	"fmt"
	"time"
)

// State is the state of a shard, in order of severity.
type State uint8

const (
	// OK: everything is handled, or is about to be.
	OK State = iota
	// Idle: not read, as intended: it waits for its parents, or is paused.
	Idle
	// NotKnown: there is no information.
	NotKnown
	// Behind: records wait, and the observation is too short to say more.
	Behind
	// CatchingUp: records wait, and the lag falls.
	CatchingUp
	// GoingBack: it was reset to an earlier position and handles those records again.
	GoingBack
	// FallingBehind: records wait and are handled, but the lag does not fall.
	FallingBehind
	// Unread: records may wait, and no worker reads them, by mistake.
	Unread
	// Stalled: it has an owner, records wait, and none are handled.
	Stalled
	// RetentionNear: unhandled records will expire soon, or have expired.
	RetentionNear
)

var states = [...]struct{ label, words string }{
	OK: {"ok", "ok"}, Idle: {"idle", "idle"}, NotKnown: {"unknown", "not known"}, Behind: {"behind", "behind"},
	CatchingUp: {"catching_up", "catching up"}, GoingBack: {"going_back", "going back"}, FallingBehind: {"falling_behind", "falling behind"},
	Unread: {"unread", "unread"}, Stalled: {"stalled", "stalled"}, RetentionNear: {"retention_near", "near the end of retention"},
}

// States returns all states, by severity.
func States() []State {
	all := make([]State, len(states))
	for i := range all {
		all[i] = State(i) //nolint:gosec // there are ten
	}
	return all
}

// String returns the state in words, such as "falling behind".
func (s State) String() string { return states[min(s, RetentionNear)].words }

// Label returns the label in metrics and JSON, such as "falling_behind".
func (s State) Label() string { return states[min(s, RetentionNear)].label }

// MarshalText returns the label.
func (s State) MarshalText() ([]byte, error) { return []byte(s.Label()), nil }

// UnmarshalText parses a label.
func (s *State) UnmarshalText(text []byte) error {
	for i := range states {
		if states[i].label == string(text) {
			*s = State(i) //nolint:gosec // there are ten
			return nil
		}
	}
	return fmt.Errorf("health: no state %.40q", text)
}

// Trouble reports whether the state needs attention: it is FallingBehind or worse.
func (s State) Trouble() bool { return s >= FallingBehind }

// Options are the time limits. Zero fields mean the defaults.
type Options struct {
	// A lag up to Allowed counts as zero. Defaults to 10 s.
	Allowed time.Duration
	// Window is how long a lag must not have fallen for the shard to be falling behind. Defaults to
	// 5 min.
	Window time.Duration
	// StallAfter is how long a shard with waiting records may make no progress. Defaults to 2 min.
	StallAfter time.Duration
	// NearRetention is the fraction of the retention at which a lag is near its end, above 0 and at
	// most 1. Defaults to 0.5.
	NearRetention float64
}

// Defaults returns o with defaults in place of zero fields.
func (o Options) Defaults() Options {
	if o.Allowed <= 0 {
		o.Allowed = 10 * time.Second
	}
	if o.Window <= 0 {
		o.Window = 5 * time.Minute
	}
	if o.StallAfter <= 0 {
		o.StallAfter = 2 * time.Minute
	}
	if !(o.NearRetention > 0 && o.NearRetention <= 1) {
		o.NearRetention = 0.5
	}
	return o
}

// Shard is the evaluation of a shard.
type Shard struct {
	State State
	// Why is the reason in a few words: the condition that the shard waits for, its stage, or the
	// reason why its checkpoint stays.
	Why string
	// Since is when the state began, as far as known from the window and the owner; otherwise zero.
	Since time.Time
	// Err is the last error of its owner, or "".
	Err string
	// ReadLag, HandledLag and SavedLag are the current lags or [Unknown]. They grow while the shard
	// has no reader.
	ReadLag, HandledLag, SavedLag time.Duration
	// Left is the time until records are lost if none are handled, or [Unknown]; 0 if some are lost
	// already.
	Left time.Duration
	// Caught is the estimated time until all records are handled if the lag keeps falling at the
	// same rate; [Unknown] in other states than CatchingUp.
	Caught time.Duration
}

// Lag returns the lag of the remaining work: the handled lag, otherwise the checkpoint lag,
// otherwise the read lag; [Unknown] if none is known.
func (v Shard) Lag() time.Duration {
	return Observation{ReadLag: v.ReadLag, HandledLag: v.HandledLag, SavedLag: v.SavedLag}.lag()
}

// Evaluate rates a shard at a time, which must not be before the last observation. The observations
// are sorted, oldest first. The rules apply in this order: records lost or near the end of
// retention, no reader, a reset, all done, no progress, and then whether the lag falls.
func Evaluate(seen []Observation, now time.Time, o Options) Shard {
	o = o.Defaults()
	if len(seen) == 0 {
		return Shard{State: NotKnown, Why: "never observed", ReadLag: Unknown, HandledLag: Unknown, SavedLag: Unknown, Left: Unknown, Caught: Unknown}
	}
	last := seen[len(seen)-1]
	age := now.Sub(last.At)
	v := Shard{
		ReadLag: grown(last.ReadLag, age), HandledLag: grown(last.HandledLag, age), SavedLag: grown(last.SavedLag, age),
		Left: Unknown, Caught: Unknown, Err: last.Err,
	}
	if last.Saved.IsEnd() {
		v.Why, v.Err, v.ReadLag, v.HandledLag, v.SavedLag = "read to its end", "", 0, 0, 0
		return v
	}
	waiting := v.Lag()
	if last.Retention > 0 && waiting >= 0 {
		v.Left = max(0, last.Retention-waiting)
	}
	tip := tipSince(seen, o.Allowed)
	switch {
	case last.Expired:
		v.State, v.Why, v.Left = RetentionNear, "records expired before they were handled", 0
	case v.Left >= 0 && float64(waiting) >= o.NearRetention*float64(last.Retention):
		v.State, v.Why = RetentionNear, "records are lost in "+rough(v.Left)
		if v.Left == 0 {
			v.Why = "records expired before they were handled"
		}
	case last.Owner == "" && (last.Wait == ForParents || last.Wait == Paused):
		v.State, v.Why, v.Since = Idle, last.Wait.String(), ownerless(seen)
	case last.Owner == "":
		v.State, v.Why, v.Since = Unread, last.Wait.String(), ownerless(seen)
	case last.Complains && now.Sub(last.Since) >= o.StallAfter:
		v.State, v.Why, v.Since = Stalled, last.Stage, last.Since
	case waiting < 0:
		v.State, v.Why = NotKnown, "its lag is unknown"
	case waiting <= o.Allowed:
	case last.Held != "" && last.HandledLag < 0:
		// Only the checkpoint is known, which is held on purpose: its lag means nothing.
	case wentBack(seen):
		v.State, v.Why, v.Since = GoingBack, "it was set back", backSince(seen)
	case now.Sub(stillSince(seen)) >= o.StallAfter:
		v.State, v.Why, v.Since = Stalled, last.Stage, stillSince(seen)
		if !last.Since.IsZero() && last.Since.Before(v.Since) {
			v.Since = last.Since
		}
		if v.Why == "" {
			v.Why = "nothing is done"
		}
	default:
		v.trend(seen, tip, o)
	}
	if last.Held != "" && v.State < Stalled {
		v.Why = join(v.Why, "its checkpoint is held by "+last.Held)
	}
	return v
}

// trend rates a lag by whether it fell in the later half of the window, in which it was never
// small.
func (v *Shard) trend(seen []Observation, tip time.Time, o Options) {
	last := seen[len(seen)-1]
	from, ok := before(seen, last.At.Add(-o.Window/2))
	if !ok {
		v.State, v.Why = Behind, "watched too briefly to say whether it catches up"
		return
	}
	if !tip.Before(from.At) && tip.After(last.At.Add(-o.Window/2)) {
		v.State, v.Why, v.Since = Behind, "since a moment ago", tip
		return
	}
	in := last.At.Sub(from.At)
	// Use the minimum of a few, so that a fluctuating lag does not count as falling.
	low := from.lag()
	for _, then := range seen {
		if l := then.lag(); l >= 0 && then.At.After(from.At) && then.At.Sub(from.At) <= o.Window/4 {
			low = min(low, l)
		}
	}
	fell := low - last.lag()
	v.Since = from.At
	if fell <= 0 {
		v.State, v.Why = FallingBehind, "its lag did not fall in "+rough(in)
		if fell < 0 {
			v.Why = "its lag grew by " + rough(-fell) + " in " + rough(in)
		}
		return
	}
	v.State = CatchingUp
	if left := float64(v.Lag()) / float64(fell) * float64(in); left < float64(maxLag) {
		v.Caught = time.Duration(left)
		v.Why = "caught up in " + rough(v.Caught) + " at this rate"
	}
}

// before returns the latest observation with a known lag not after a time.
func before(seen []Observation, moment time.Time) (Observation, bool) {
	for i := len(seen) - 1; i >= 0; i-- {
		if s := seen[i]; !s.At.After(moment) && s.lag() >= 0 {
			return s, true
		}
	}
	return Observation{}, false
}

// tipSince returns when an allowed lag was last seen, zero if never.
func tipSince(seen []Observation, allowed time.Duration) time.Time {
	for i := len(seen) - 1; i >= 0; i-- {
		if l := seen[i].lag(); l >= 0 && l <= allowed {
			return seen[i].At
		}
	}
	return time.Time{}
}

// stillSince returns the time since which the position stands still while records wait.
func stillSince(seen []Observation) time.Time {
	last := seen[len(seen)-1]
	since := last.At
	for i := len(seen) - 1; i >= 0; i-- {
		if seen[i].progress() != last.progress() || seen[i].lag() == 0 || seen[i].Owner == "" {
			break
		}
		since = seen[i].At
	}
	return since
}

// ownerless returns the time since which no owner was seen. A single observation is not enough.
func ownerless(seen []Observation) time.Time {
	if len(seen) == 1 {
		return time.Time{}
	}
	since := seen[len(seen)-1].At
	for i := len(seen) - 1; i >= 0 && seen[i].Owner == ""; i-- {
		since = seen[i].At
	}
	return since
}

// wentBack reports whether the checkpoint was further ahead before.
func wentBack(seen []Observation) bool { return !backSince(seen).IsZero() }

// backSince returns when the checkpoint was first seen behind an earlier place that it has not
// reached again; zero if it did not go back.
func backSince(seen []Observation) time.Time {
	var since time.Time
	most := seen[0].Saved
	for _, s := range seen[1:] {
		if s.Saved.Compare(most) >= 0 {
			most, since = s.Saved, time.Time{}
		} else if since.IsZero() {
			since = s.At
		}
	}
	return since
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// rough formats a duration for people, with at most two units.
func rough(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Round(time.Second).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
