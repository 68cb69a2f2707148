package keyed

import (
	"time"

	"github.com/weir-go/weir/internal/delivery"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
)

// Call is a call of the user's code with records of one key. It is used again for other records
// when these are done. It does not contain the batch and records that the handler may keep.
type Call struct {
	Delivery delivery.Delivery
	Of       any // data of the host; it never changes once it is set

	runner *Runner // never changes
	turn
}

// turn is the state of a call. It contains all fields that belong to its present records.
type turn struct {
	// The call has one of the worker's slots, or the one that the shard has in addition for its
	// oldest record. It has neither while it rests, see Runner.rest.
	slot, own bool

	use     uint64 // of the delivery
	lane    *Lane  // nil when it is over
	noted   int    // records that are done, as the span knows
	works   bool   // the user's code is called
	began   mono.Time
	resting int       // goroutines of the handler that wait until older records are done
	due     mono.Time // when its pause is over
	Status
}

// Status is how a call stands.
type Status struct {
	State   supervise.State
	Since   mono.Time // of State
	Attempt int
	Err     error     // of the last call; nil if that did not fail
	Failing mono.Time // first failure in a row
	At      lease.Failing
}

// begin makes c the call of the records of a lane. It sets all fields that belong to them. Only
// constant fields stay, because a handler that kept an old batch may read those at any time.
func (c *Call) begin(l *Lane, behind time.Duration) {
	use := c.Delivery.Begin(delivery.Batch{Behind: behind}, delivery.Marked(l.Records))
	c.turn = turn{use: use, lane: l}
	l.call = c
}

// runs notes that the user's code is called.
func (c *Call) runs(now mono.Time) {
	c.works, c.began = true, now
	c.State, c.Since = supervise.Handling, now
}

// Enter notes what is done with the records. The goroutine that hands them over calls it.
func (c *Call) Enter(state supervise.State, attempt int, err error) {
	if state == supervise.Handling && err == nil && c.Err == nil {
		return // it is noted already
	}
	c.runner.mu.Lock()
	defer c.runner.mu.Unlock()
	if c.lane == nil {
		return
	}
	if c.State != state {
		c.State, c.Since = state, mono.Now()
	}
	switch {
	case err == nil:
		c.Failing = 0
	case c.Failing.IsZero():
		c.Failing = mono.Now()
	}
	c.Attempt, c.Err = attempt, err
}

// FailsAt notes what the handler fails at.
func (c *Call) FailsAt(at lease.Failing) {
	c.runner.mu.Lock()
	defer c.runner.mu.Unlock()
	c.At = at
}

// NoteDone sets the number of done records, if the delivery still serves them. Any goroutine
// may call it.
func (c *Call) NoteDone(use uint64, done int) {
	r := c.runner
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.use == use && c.lane != nil {
		r.done(c, done)
		r.begin() // another record is the oldest
		r.tellChange()
	}
}

// Runner returns the runner of the call.
func (c *Call) Runner() *Runner { return c.runner }
