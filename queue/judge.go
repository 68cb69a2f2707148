package queue

import (
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/failure"
)

// history contains the failures of a record in this process.
type history struct {
	attempts              int // failed calls that had only this record, or named it
	failures              int // all failed calls
	first, latest, before time.Time
	err                   error
	released              deadletter.Reason // why it was set aside without a destination; empty if it was not
}

// note adds a failure. counts is false if another record of the call may be the cause.
func (h *history) note(err error, counts bool, now time.Time) {
	h.failures++
	h.err = err
	if !counts {
		return
	}
	h.attempts++
	h.before, h.latest = h.latest, now
	if h.first.IsZero() {
		h.first = now
	}
}

// judge returns whether a record is set aside after a failure, and why. worked is when the latest
// successful call began, as known when the failed call began.
func judge(b *failure.Brake, h *history, rejected bool, age time.Duration, worked, now time.Time) (aside bool, why deadletter.Reason) {
	old := 0
	if b.Policy.MaxAge > 0 && age >= b.Policy.MaxAge {
		old = 1
	}
	v := b.Judge(&failure.History{Attempts: h.attempts, First: h.first, Before: h.before}, failure.Blame{Named: true, Rejected: rejected}, 1, old, worked, now)
	return v.Do == failure.GiveUp, v.Reason
}

// releaseDelay returns how long a record that is set aside without a destination stays hidden. The
// queue makes it a dead letter after its last receive, so there is nothing to wait for. If the
// queue keeps no dead letters, or if that is unknown, the delay doubles with each receive.
func releaseDelay(deadLetters string, receiveCount int) time.Duration {
	if deadLetters == builtIn {
		return 0
	}
	const low, high = 2 * time.Second, 15 * time.Minute
	return min(low<<min(max(receiveCount-1, 0), 16), high)
}

// ackDelay returns how long an acknowledgement waits for others: by default, for as long as the
// handlers need for ten records. handling is the average time of a handler for a record.
func ackDelay(option, handling, hold time.Duration, concurrency int) time.Duration {
	if option > 0 {
		return option
	}
	ten := mostPerCall * handling / time.Duration(concurrency)
	return max(min(ten, hold/2), 100*time.Millisecond)
}

// builtIn is the target of dead letters in the queue itself.
const builtIn = "BUILT_IN"

// releaseAtStop reports whether a record that was never started is released when Run stops. Other
// waiting records are handled before the stop: a release costs a receive, and a record must not
// become a dead letter of the queue because of many stops.
func releaseAtStop(receiveCount, most int) bool {
	if most == 0 {
		most = defaultMaxReceives
	}
	return receiveCount*2 <= most
}

// defaultMaxReceives is the service's default of MaxReceiveCount.
const defaultMaxReceives = 6

// lowReceiveCount reports whether a queue's MaxReceiveCount is low. A record needs one receive per
// attempt of MaxHold, and spends more in crashes and restarts.
func lowReceiveCount(a Attributes) bool {
	return a.DeadLetters == builtIn && a.MaxReceiveCount > 0 && a.MaxReceiveCount < 10
}
