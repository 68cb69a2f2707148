package queue

import "time"

// hold is the time for which a received record is hidden from other consumers. Its times are this
// process's, and earlier than those of the service.
type hold struct {
	length   time.Duration // of one receive or extension
	most     time.Duration // in all
	since    time.Time     // first time of the record in this process
	until    time.Time     // end of the trusted time
	hidden   time.Time     // end without the margin
	next     time.Time     // when the next step is due
	failures int           // of the last extensions
	asked    bool          // an extension is in flight
	lost     bool
}

// margin returns how much earlier a hold of length d ends for this process.
func margin(d time.Duration) time.Duration { return min(d/10, 2*time.Second) }

// newHold returns the hold of a record whose answer began to arrive at the time at.
func newHold(at time.Time, length, most time.Duration) hold {
	h := hold{length: length, most: most, since: at}
	h.extended(at, length)
	return h
}

// extended records that the record is hidden for d from the time at.
func (h *hold) extended(at time.Time, d time.Duration) {
	h.until, h.hidden, h.failures, h.asked = at.Add(d-margin(d)), at.Add(d), 0, false
	h.next = at.Add(d / 2)
}

// extensionFailed records a temporary failure of an extension. The next one follows after pause.
func (h *hold) extensionFailed(now time.Time, pause time.Duration) {
	h.failures++
	h.asked, h.next = false, now.Add(pause)
}

// last returns the end of the trusted time if all extensions succeed.
func (h *hold) last() time.Time {
	return h.since.Add(h.most - margin(h.length))
}

// step is the next action for a hold.
type step uint8

const (
	stepWait   step = iota // nothing is due
	stepExtend             // ask for an extension
	stepLose               // the hold has ended
)

// decide returns the next step at a time, and the length of the extension, or when to decide again.
// An extension never hides a record beyond the longest time.
func (h *hold) decide(now time.Time) (do step, d time.Duration, again time.Time) {
	rest := h.since.Add(h.most).Sub(now).Truncate(time.Second)
	switch {
	case h.lost:
		return stepWait, 0, time.Time{}
	case !now.Before(h.until):
		return stepLose, 0, time.Time{}
	case h.asked || rest < time.Second || !now.Add(rest).After(h.hidden):
		return stepWait, 0, h.until
	case now.Before(h.next):
		return stepWait, 0, earlier(h.next, h.until)
	}
	return stepExtend, min(h.length, rest), h.until
}

// earlier returns the earlier of two times. A zero time means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
