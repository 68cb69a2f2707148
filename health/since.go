package health

import "time"

// certain is the maximum error with which the time of a change counts as exact.
const certain = 5 * time.Second

// start is when a condition began.
type start struct {
	at   time.Time // zero while the condition does not hold
	seen startSeen
}

// startSeen is what is known about a start.
type startSeen uint8

const (
	startExact   startSeen = iota // the condition began at this time, to within a few seconds
	startAtLeast                  // it began at this time or a little earlier
	startBefore                   // it began at this time or earlier; nobody watched it
	startUnknown                  // it was there at the first observation, without a past
)

// beginnings contains the times at which the conditions in an observation began.
type beginnings struct {
	unowned start // it has no owner
	still   start // it has an owner, records wait, and its position does not move
	behind  start // its lag is larger than allowed
}

// begin returns the beginnings at the first observation.
func begin(o Observation, allowed time.Duration) *beginnings {
	b := &beginnings{}
	first := start{o.At, startUnknown}
	if o.Past {
		first.seen = startAtLeast
	}
	if o.Owner == "" {
		b.unowned = first
	} else if o.lag() != 0 {
		b.still = first
	}
	if o.lag() > allowed {
		b.behind = start{o.wasBehind(allowed), startBefore}
	}
	return b
}

// wasBehind returns a time at which the lag was larger than allowed already: when the oldest record
// that still waits had waited for that long.
func (o Observation) wasBehind(allowed time.Duration) time.Time {
	lag := o.lag()
	if o.Past {
		lag -= lag / blur
	}
	return o.At.Add(-max(0, lag-allowed))
}

// then returns the beginnings at the next observation after o.
func (o Observation) then(next Observation, allowed time.Duration) *beginnings {
	was, b := o.begun, &beginnings{}
	changed := start{next.At, startExact}
	switch apart := next.At.Sub(o.At); {
	case o.Past || apart > 2*certain:
		changed.seen = startAtLeast
	case apart > certain: // the middle is near enough
		changed.at = next.At.Add(-apart / 2)
	}
	switch {
	case next.Owner != "":
	case o.Owner == "":
		b.unowned = was.unowned
	default:
		b.unowned = changed
		if !next.Since.IsZero() {
			b.unowned.at = next.Since
		}
	}
	switch {
	case next.Owner == "" || next.lag() == 0:
	case o.Past: // it has no position
		b.still = start{next.At, startUnknown}
	case was.still.at.IsZero() || o.progress() != next.progress():
		b.still = changed
	default:
		b.still = was.still
	}
	switch lag := next.lag(); {
	case lag < 0:
		b.behind = was.behind
	case lag <= allowed:
	case !was.behind.at.IsZero():
		b.behind = was.behind
	case o.lag() < 0:
		b.behind = start{next.wasBehind(allowed), startBefore}
	case changed.seen == startAtLeast:
		b.behind = changed
		if was := next.wasBehind(allowed); was.After(o.At) {
			b.behind.at = was
		}
	default:
		b.behind = changed
	}
	return b
}

// beginningsOf returns the beginnings at the last of some observations. The observations need not
// come from Observations.
func beginningsOf(seen []Observation, allowed time.Duration) *beginnings {
	last := seen[len(seen)-1]
	if last.begun != nil {
		return last.begun
	}
	before := seen[0]
	before.begun = begin(before, allowed)
	for _, o := range seen[1:] {
		o.begun = before.then(o, allowed)
		before = o
	}
	return before.begun
}

// began sets when the state began.
func (v *Shard) began(s start, now time.Time) {
	v.Since, v.AtLeast, v.lasts = time.Time{}, false, 0
	if s.at.IsZero() || s.seen == startUnknown {
		return
	}
	v.Since, v.AtLeast, v.lasts = s.at, s.seen != startExact, now.Sub(s.at)
}

// lasting returns a text about how long the state has lasted. It begins with a space or a comma, or
// is "".
func (v Shard) lasting() string {
	about := ""
	if v.State == FallingBehind {
		about = ", behind"
	}
	switch {
	case !v.State.Trouble() && v.State != Idle || v.State == RetentionNear:
		return ""
	case v.Since.IsZero(), v.AtLeast && v.lasts < time.Second:
		if !v.State.Trouble() {
			return ""
		}
		return ", since unknown"
	case v.AtLeast:
		return about + " for at least " + rough(max(v.lasts, 0))
	}
	return about + " since " + v.Since.UTC().Format("15:04:05") + " UTC"
}

// Text describes the evaluation in words: the lag, the reason, how long the state has lasted, and
// the last error. It does not name the state. All tools show this text.
func (v Shard) Text() string {
	text, lag := v.Why(), v.Lag()
	switch {
	case text != "" && lag > 0 && v.State != OK && v.State != NotKnown:
		text = rough(lag) + " behind, " + text
	case text == "" && v.State != OK && lag > 0, text == "" && v.State == OK && lag >= time.Second:
		text = rough(lag) + " behind"
	case text == "" && v.State == OK:
		text = "up to date"
	}
	text += v.lasting()
	if v.Err != "" {
		text += "; last error: " + clean(v.Err)
	}
	return text
}
