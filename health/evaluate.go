package health

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// State is the state of a shard. The constants are in the order of severity, so states compare with
// < and >. A State is a plain value, and all its methods may be called concurrently.
type State uint8

const (
	// OK means that all records are handled, or are about to be.
	OK State = iota
	// Idle means that the shard is intentionally not read. It waits for its parents or is paused.
	Idle
	// NotKnown means that there is no information.
	NotKnown
	// Behind means that records wait, and that the lag neither falls nor grows or was watched too
	// briefly.
	Behind
	// CatchingUp means that records wait, and that the lag falls.
	CatchingUp
	// GoingBack means that the shard was reset to an earlier position and handles its records
	// again.
	GoingBack
	// FallingBehind means that records wait and are handled, but the lag grows by more than a
	// second in two minutes.
	FallingBehind
	// Unread means that no worker reads the shard, although one should, and that records may wait.
	Unread
	// Stalled means that the shard has an owner and records wait, but none are handled.
	Stalled
	// RetentionNear means that unhandled records will soon expire or have expired.
	RetentionNear
)

var states = [...]struct{ label, words string }{
	OK: {"ok", "ok"}, Idle: {"idle", "idle"}, NotKnown: {"unknown", "not known"}, Behind: {"behind", "behind"},
	CatchingUp: {"catching_up", "catching up"}, GoingBack: {"going_back", "going back"}, FallingBehind: {"falling_behind", "falling behind"},
	Unread: {"unread", "unread"}, Stalled: {"stalled", "stalled"}, RetentionNear: {"retention_near", "near the end of retention"},
}

// States returns all states in the order of severity. The caller owns the slice.
func States() []State {
	all := make([]State, len(states))
	for i := range all {
		all[i] = State(i) //nolint:gosec // there are ten
	}
	return all
}

// String returns the state in words, such as "falling behind".
func (s State) String() string { return states[min(s, RetentionNear)].words }

// Label returns the state as it is used in metrics and JSON, such as "falling_behind".
func (s State) Label() string { return states[min(s, RetentionNear)].label }

// MarshalText returns the label. The error is always nil.
func (s State) MarshalText() ([]byte, error) { return []byte(s.Label()), nil }

// UnmarshalText parses a label. It returns an error for any other text.
func (s *State) UnmarshalText(text []byte) error {
	for i := range states {
		if states[i].label == string(text) {
			*s = State(i) //nolint:gosec // there are ten
			return nil
		}
	}
	return fmt.Errorf("health: no state %.40q", text)
}

// Trouble reports whether the state needs attention. That is true for FallingBehind and worse
// states.
func (s State) Trouble() bool { return s >= FallingBehind }

// Options contains time limits. Fields that are zero or out of range have defaults.
type Options struct {
	// Allowed is the maximum lag that counts as zero, above 0. Default 10 s.
	Allowed time.Duration
	// TrendOver is the time that the observations cover. The later half of it shows whether a lag
	// grows or falls. It is above 0. Default 5 min.
	TrendOver time.Duration
	// StallAfter is how long a shard with waiting records may make no progress, above 0. Default 2
	// min.
	StallAfter time.Duration
	// NearRetention is a fraction of the retention, above 0 and at most 1. If a lag reaches it, the
	// shard is [RetentionNear]. Default 0.5.
	NearRetention float64
}

// Defaults returns o with fields that are zero or out of range replaced by defaults.
func (o Options) Defaults() Options {
	if o.Allowed <= 0 {
		o.Allowed = 10 * time.Second
	}
	if o.TrendOver <= 0 {
		o.TrendOver = 5 * time.Minute
	}
	if o.StallAfter <= 0 {
		o.StallAfter = 2 * time.Minute
	}
	if !(o.NearRetention > 0 && o.NearRetention <= 1) {
		o.NearRetention = 0.5
	}
	return o
}

// Shard is the evaluation of a shard at one moment. It is a plain value, and its methods may be
// called concurrently.
type Shard struct {
	// State is the result, the zero value being [OK].
	State State
	// Reason is the condition that the shard waits for, the activity of its worker, or what the
	// observations show. It is [NoReason] if all is well. Detail completes its words, for example
	// "by 5 min in 3 min" for [LagGrows], or is "". [Shard.Why] joins both.
	Reason Reason
	Detail string
	// Held is why the checkpoint does not move although records are handled, such as "by an open
	// window". It is "" if nothing holds the checkpoint, or if Reason is more important.
	Held string
	// Since is when the state began, or zero if that is unknown. The states Behind, CatchingUp and
	// FallingBehind depend on the trend of the lag. For them, Since is when the lag became larger
	// than allowed. It is for display only.
	Since time.Time
	// AtLeast reports that the state may have begun before Since.
	AtLeast bool
	// Err is the last error of its owner, or "".
	Err string
	// ReadLag, HandledLag and SavedLag are the current lags or [Unknown]. They grow while the shard
	// has no reader.
	ReadLag, HandledLag, SavedLag time.Duration
	// Left is the time until records are lost if none are handled, or [Unknown]. It is 0 if some
	// are already lost.
	Left time.Duration
	// Caught is the estimated time until all records are handled, if the lag continues to fall at
	// the same rate. It is [Unknown] in all states except CatchingUp.
	Caught time.Duration
	// Change is by how much the lag changed within the time Over, negative if it fell. Both are 0
	// if they are unknown.
	Change, Over time.Duration

	// Finished reports that the shard was read to its end.
	Finished bool

	lasts time.Duration // how long it lasts if Since is known
	back  time.Time     // when the checkpoint of expired records was moved back, or zero
}

// Lag returns the handled lag. If it is unknown, Lag returns the checkpoint lag, or else the read
// lag. It returns [Unknown] if no lag is known.
func (v Shard) Lag() time.Duration {
	return Observation{ReadLag: v.ReadLag, HandledLag: v.HandledLag, SavedLag: v.SavedLag}.lag()
}

// Evaluate rates a shard at the time now, which must not be before the last observation. seen is
// sorted, oldest first, and Evaluate neither changes nor keeps it. The rules apply in this order:
// the end of the shard, records that are lost or near the end of retention, no reader, a stall that
// the owner reports, an unknown lag, a lag that is allowed, a held checkpoint, a reset, no
// progress, and then whether the lag falls.
func Evaluate(seen []Observation, now time.Time, o Options) Shard {
	o = o.Defaults()
	if len(seen) == 0 {
		return Shard{State: NotKnown, Reason: NeverObserved, ReadLag: Unknown, HandledLag: Unknown, SavedLag: Unknown, Left: Unknown, Caught: Unknown}
	}
	last := seen[len(seen)-1]
	age := now.Sub(last.At)
	v := Shard{
		ReadLag: grown(last.ReadLag, age), HandledLag: grown(last.HandledLag, age), SavedLag: grown(last.SavedLag, age),
		Left: Unknown, Caught: Unknown, Err: last.Err,
	}
	if last.Saved.IsEnd() {
		v.Reason, v.Err, v.ReadLag, v.HandledLag, v.SavedLag = Ended, "", 0, 0, 0
		v.Finished = true
		return v
	}
	waiting := v.Lag()
	if last.Retention > 0 && waiting >= 0 {
		v.Left = max(0, last.Retention-waiting)
	}
	began := beginningsOf(seen, o.Allowed)
	switch {
	case last.Expired:
		v.State, v.Reason, v.Left = RetentionNear, RecordsExpired, 0
		v.back = backSince(seen)
	case v.Left >= 0 && float64(waiting) >= o.NearRetention*float64(last.Retention):
		v.State, v.Reason, v.Detail = RetentionNear, RecordsExpire, "in "+rough(v.Left)
		if v.Left == 0 {
			v.Reason, v.Detail = RecordsExpired, ""
		}
	case last.Owner == "" && last.Reason != NoReason && !last.Reason.Trouble():
		v.State, v.Reason, v.Detail = Idle, last.Reason, last.Detail
		v.began(began.unowned, now)
	case last.Owner == "":
		v.State, v.Reason, v.Detail = Unread, last.Reason, last.Detail
		v.began(began.unowned, now)
	case last.Complains && now.Sub(last.Since) >= o.StallAfter:
		v.State, v.Reason, v.Detail = Stalled, last.Reason, last.Detail
		v.began(start{at: last.Since}, now)
	case waiting < 0:
		v.State, v.Reason = NotKnown, LagUnknown
	case waiting <= o.Allowed:
	case last.Held != "" && last.HandledLag < 0:
		// Only the checkpoint is known. It is held on purpose, so its lag shows no problem.
	case wentBack(seen):
		v.State, v.Reason = GoingBack, SetBack
		v.began(start{at: backSince(seen)}, now)
	case !began.still.at.IsZero() && now.Sub(began.still.at) >= o.StallAfter:
		v.State, v.Reason, v.Detail = Stalled, last.Reason, last.Detail
		v.began(began.still, now)
		if !last.Since.IsZero() && last.Since.Before(began.still.at) {
			v.began(start{at: last.Since}, now)
		}
		if v.Reason == NoReason {
			v.Reason = NoProgress
		}
	default:
		v.trend(seen, began.behind, now, o)
	}
	if last.Held != "" && v.State < Stalled {
		if v.Held = last.Held; v.Reason == NoReason {
			v.Reason = CheckpointHeld
		}
	}
	return v
}

// trend sets the state: it depends on whether the lag grew or fell in the later half of
// Options.TrendOver. If the lag was small at some time in that half, the state is Behind.
func (v *Shard) trend(seen []Observation, behind start, now time.Time, o Options) {
	last := seen[len(seen)-1]
	v.State = Behind
	v.began(behind, now)
	from, low, ok := earlier(seen, o)
	switch {
	case ok:
	case behind.seen < startBefore && last.At.Sub(behind.at) < o.TrendOver/2:
		v.Reason = BehindBriefly
		return
	case low >= 0 && low <= o.Allowed && behind.seen < startBefore:
		v.Reason = BehindBriefly
		return
	case slices.ContainsFunc(seen, func(s Observation) bool {
		return s.Past && last.At.Sub(s.At) >= o.TrendOver
	}):
		v.Reason = LagSteady
		return
	default:
		v.Reason = WatchedBriefly
		return
	}
	in := last.At.Sub(from.At)
	fell, least := low-last.lag(), in/leastPart
	v.Change, v.Over = -fell, in
	switch {
	case -fell > least:
		v.State, v.Reason = FallingBehind, LagGrows
		v.Detail = "by " + rough(-fell) + " in " + rough(in)
	case fell > least:
		v.State, v.Reason = CatchingUp, LagFalls
		v.Detail = "by " + rough(fell) + " in " + rough(in)
		if left := float64(v.Lag()) / float64(fell) * float64(in); left < float64(maxLag) {
			v.Caught = time.Duration(left)
		}
	default:
		v.Reason = LagSteady
	}
}

// leastPart is the elapsed time divided by the least change of a lag that counts as growing or
// falling: a second in two minutes.
const leastPart = 120

// earlier returns the observation with which the last one is compared. This is the latest
// observation that is at least half of TrendOver older than the last one. A lag may fluctuate, so
// low is the least lag from that observation until a quarter of TrendOver after it. An observation
// from history is used only if the lag changed by more than its possible error. If the lag became
// large after that observation, the first later one is used if it is at least a quarter of
// TrendOver old. ok is false if there is no such observation.
func earlier(seen []Observation, o Options) (from Observation, low time.Duration, ok bool) {
	last := seen[len(seen)-1]
	half := last.At.Add(-o.TrendOver / 2)
	oldest := -1 // index of the oldest known lag in that half
	for i := len(seen) - 1; i >= 0; i-- {
		from = seen[i]
		switch low = from.lag(); {
		case low < 0:
			continue
		case low <= o.Allowed && (from.At.After(half) || oldest < 0 || last.At.Sub(seen[oldest].At) < o.TrendOver/4):
			return from, low, false
		case low <= o.Allowed: // it became large between this observation and the next one
			if then, least, ok := compared(seen, oldest, o); ok {
				return then, least, true
			}
			return from, low, false
		case from.At.After(half):
			oldest = i
			continue
		}
		if from, low, ok = compared(seen, i, o); ok {
			return from, low, true
		}
	}
	return from, low, false
}

// compared returns the observation at an index and the lag of that time for the comparison with the
// last observation. ok is false if it is from history and the change is within its possible error.
func compared(seen []Observation, i int, o Options) (from Observation, low time.Duration, ok bool) {
	from, last := seen[i], seen[len(seen)-1]
	low = from.lag()
	if from.Past { // a lag grows no faster than the time passes
		change := (low - last.lag()).Abs()
		return from, max(low, last.lag()-last.At.Sub(from.At)), change > (low+last.lag())/blur
	}
	for _, then := range seen[i+1:] {
		if l := then.lag(); l >= 0 && then.At.Sub(from.At) <= o.TrendOver/4 {
			low = min(low, l)
		}
	}
	return from, low, true
}

// blur is the inverse of the possible error of a lag from history, which is 5 %.
const blur = 20

// wentBack reports whether the checkpoint moved back and has not reached its former place again.
func wentBack(seen []Observation) bool { return !backSince(seen).IsZero() }

// backSince returns when the checkpoint was first seen behind an earlier place that it has not
// reached again. It returns zero if the checkpoint did not move back.
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

// Why returns the reason in words with its details, such as "its lag grew by 5 min in 3 min; its
// checkpoint is held by an open window". It returns "" if there is no reason.
func (v Shard) Why() string {
	text, held := v.Reason.String(), ""
	if v.Reason == OtherReason {
		text = v.Detail
	} else if v.Detail != "" {
		text += " " + v.Detail
	}
	switch {
	case v.Held == "":
		return text
	case strings.HasPrefix(v.Held, "by "):
		held = CheckpointHeld.String() + " " + v.Held
	default:
		held = CheckpointHeld.String() + ": " + v.Held
	}
	if v.Reason == CheckpointHeld || text == "" {
		return held
	}
	return text + "; " + held
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
