package queue

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/probe"
)

// troubleAfter is how long receives or handlers fail before a consumer is not ready or stalled.
const troubleAfter = time.Minute

// standing is the state of a consumer's runs for health checks.
type standing struct {
	running, returned, stopping bool
	// received is when the last successful receive of this run ended. receiveFails is when the
	// first failure after it occurred, and why is the error of the last failure.
	received, receiveFails time.Time
	why                    error
	// handlerFails is when the first failed call of the handler ended after the last success, or
	// zero. outstanding is the number of deliveries in the process.
	handlerFails time.Time
	outstanding  int
}

// Status is the result of [Consumer.Health].
type Status struct {
	// State is one of these. [health.OK]: the consumer receives records, and handles them.
	// [health.NotKnown]: no receive has succeeded yet. [health.Unread]: receives have failed for a
	// minute, or Run is not running. [health.Stalled]: the process has records, and every call of
	// the handler has failed for a minute.
	State health.State
	// Since is when a state other than OK and NotKnown began, or zero.
	Since time.Time
	// Reason is a sentence without names of records. It is "" if State is OK.
	Reason string
}

// live returns why a restart of the process would help, or nil.
func (s *standing) live() error {
	if s.returned && !s.running {
		return errors.New("Run has returned")
	}
	return nil
}

// ready returns why the consumer does not receive records, or nil.
func (s *standing) ready(now time.Time) error {
	switch {
	case !s.running:
		return errors.New("Run was not called, or has returned")
	case s.stopping:
		return errors.New("the consumer is stopping")
	case s.received.IsZero() && s.why == nil:
		return errors.New("no call for the queue has succeeded yet")
	case s.failing(now) || s.received.IsZero():
		return fmt.Errorf("receives fail: %w", s.why)
	}
	return nil
}

func (s *standing) failing(now time.Time) bool {
	return !s.receiveFails.IsZero() && now.Sub(s.receiveFails) >= troubleAfter
}

// receiveFailed notes the failure of a receive, or of a call before the first one.
func (s *standing) receiveFailed(err error, at time.Time) {
	s.why = err
	if s.receiveFails.IsZero() {
		s.receiveFails = at
	}
}

// receiveWorked notes a receive that succeeded.
func (s *standing) receiveWorked(at time.Time) {
	s.received, s.receiveFails, s.why = at, time.Time{}, nil
}

// handled notes the end of a call of the handler.
func (s *standing) handled(worked bool, at time.Time) {
	switch {
	case worked:
		s.handlerFails = time.Time{}
	case s.handlerFails.IsZero():
		s.handlerFails = at
	}
}

// status returns the status at a time.
func (s *standing) status(now time.Time) Status {
	switch {
	case !s.running:
		return Status{State: health.Unread, Reason: "Run was not called, or has returned"}
	case s.failing(now):
		return Status{State: health.Unread, Since: s.receiveFails, Reason: "receives fail"}
	case s.outstanding > 0 && !s.handlerFails.IsZero() && now.Sub(s.handlerFails) >= troubleAfter:
		return Status{State: health.Stalled, Since: s.handlerFails, Reason: "the handler fails at every record"}
	case s.received.IsZero():
		return Status{State: health.NotKnown, Reason: "no receive has succeeded yet"}
	}
	return Status{State: health.OK}
}

// stand changes the standing.
func (c *Consumer) stand(change func(*standing)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.standing)
}

func (c *Consumer) standingNow() standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.standing
	s.outstanding = c.counts.InFlight
	return s
}

// Live returns an error if a restart of the process would help: Run has returned. It returns nil
// before Run, and while the service or the handler fails. Live, Ready and Health are cheap and may
// be called at any time.
func (c *Consumer) Live() error {
	s := c.standingNow()
	return s.live()
}

// Ready returns nil while this consumer receives records: Run is active and is not stopping, and
// receives have succeeded and have not been failing for a minute. The error says which condition is
// not met.
func (c *Consumer) Ready() error {
	s := c.standingNow()
	return s.ready(time.Now())
}

// Health returns the state of this consumer. It does not include the number of records that wait in
// the queue; see the metrics VisibleQueueRecords and VisibleDeadLetterQueueRecords of CloudWatch.
func (c *Consumer) Health() Status {
	s := c.standingNow()
	return s.status(time.Now())
}

// HealthHandler returns an HTTP handler that serves [Consumer.Live] under paths that end in /livez,
// and [Consumer.Ready] under paths that end in /readyz. The status is 200 or 503. The JSON body
// says whether the check passed, why not, and the state, with its reason and start; the state does
// not change the status. It contains no names and no texts of the handler's errors.
//
// Other paths, methods and hosts are refused as by [weir.Consumer.HealthHandler].
func (c *Consumer) HealthHandler() http.Handler {
	live := func() (any, bool) {
		s, now := c.standingNow(), time.Now()
		return s.answer(s.live(), now)
	}
	ready := func() (any, bool) {
		s, now := c.standingNow(), time.Now()
		if s.why != nil {
			s.why = errors.New("see the log") // it may contain names
		}
		return s.answer(s.ready(now), now)
	}
	return probe.Handler(live, ready)
}

// answer returns the body of an answer to a health check with the result err, and whether the check
// passed.
func (s *standing) answer(err error, now time.Time) (answer healthAnswer, ok bool) {
	is := s.status(now)
	answer = healthAnswer{OK: err == nil, Reasons: []string{}, InFlight: s.outstanding, State: is.State.Label(), Reason: is.Reason, Since: is.Since}
	if err != nil {
		answer.Reasons = []string{err.Error()}
	}
	return answer, err == nil
}

type healthAnswer struct {
	OK       bool      `json:"ok"`
	Reasons  []string  `json:"reasons"`
	InFlight int       `json:"in_flight"` // deliveries that this process has
	State    string    `json:"state"`
	Reason   string    `json:"reason,omitempty"`
	Since    time.Time `json:"since,omitzero"`
}
