package keyed

import (
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/delivery"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/lease"
)

// Call is a call of user code with records of one key. A Call is reused for other records
// afterwards.
type Call struct {
	Delivery delivery.Delivery
	Of       any // data of the host; it never changes once it is set

	runner *Runner // never changes
	turn
}

// turn is the state of a call that belongs to its current records.
type turn struct {
	// The call has one of the worker's slots (slot), or the additional slot of the shard for its
	// oldest record (own). It has neither while it rests, see Runner.rest.
	slot, own bool

	use     uint64 // identifies the use of the delivery
	lane    *Lane  // nil when the call is over
	noted   int    // number of done records that the span knows
	works   bool   // user code is running
	began   mono.Time
	resting int       // number of the handler's goroutines that wait for older records
	due     mono.Time // the end of its pause
	Status
}

// Status describes the state of a call.
type Status struct {
	State   health.Reason
	Since   mono.Time // start of State
	Attempt int
	Err     error     // error of the last call; nil if it succeeded
	Failing mono.Time // start of the failures in a row
	At      lease.Failing
}

// begin starts a call for the records of a lane. It sets all fields that belong to these records.
// Only constant fields keep their values, because a handler that kept an old batch may read these
// fields at any time.
func (c *Call) begin(l *Lane, behind time.Duration) {
	use := c.Delivery.Begin(delivery.Batch{Behind: behind}, delivery.Marked(l.Records))
	c.turn = turn{use: use, lane: l}
	l.call = c
}

// runs records that user code is running.
func (c *Call) runs(now mono.Time) {
	c.works, c.began = true, now
	c.State, c.Since = health.InHandler, now
}

// Enter records the state of the call. The goroutine that calls the user code calls Enter.
func (c *Call) Enter(state health.Reason, attempt int, err error) {
	if state == health.InHandler && err == nil && c.Err == nil {
		return // this is already recorded
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

// FailsAt records where the handler fails.
func (c *Call) FailsAt(at lease.Failing) {
	c.runner.mu.Lock()
	defer c.runner.mu.Unlock()
	c.At = at
}

// NoteDone sets the number of done records, unless the delivery already serves other records. Any
// goroutine may call it.
func (c *Call) NoteDone(use uint64, done int) {
	r := c.runner
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.use == use && c.lane != nil {
		r.done(c, done)
		r.begin() // the oldest record is another one now
		r.tellChange()
	}
}

// Runner returns the runner of the call.
func (c *Call) Runner() *Runner { return c.runner }
