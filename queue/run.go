package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/notify"
	"github.com/weir-go/weir/internal/retry"
)

const (
	pollGrace    = time.Second     // how long a stop waits for the answers of receives
	abandonAfter = 2 * time.Second // after StopTimeout
)

// run is one call of Run. Its loop owns all fields. Other goroutines make one call each, and send a
// function with the result, which the loop executes.
type run struct {
	*Consumer
	handler Handler
	batch   int // most records of a call
	arn     string
	queue   Description
	hooks   *notify.Queue
	brake   *failure.Brake

	parent   context.Context    // its values are those of the handlers' contexts
	done     <-chan struct{}    // of the context of Run; nil once the run stops
	calls    context.Context    // of calls other than receives
	receives context.Context    // of receives
	results  chan func()        // functions for the loop
	over     chan struct{}      // closed when the loop has ended
	endCalls context.CancelFunc // ends calls
	endPolls context.CancelFunc // ends receives

	flow       flow
	pollAgain  time.Time // no receive before this time
	polls      retry.Backoff
	received   bool // a receive succeeded
	checking   bool // DescribeQueue is in flight
	inFlight   map[*poll]bool
	admissions []*admission // answers that wait for memory

	deliveries map[string]*delivery // by record ID
	finished   *memory
	waiting    []*task
	keys       map[string][]*task // with OrderByKey: the tasks behind the one of the key
	pauses     timeline[*task]
	holds      timeline[*delivery]
	acks       acks
	extending  int // calls in flight
	releases   []release
	releasing  int // calls in flight
	ready      int // handler calls in flight
	storing    int // calls of the destination in flight
	active     int // tasks that wait for a handler or have one
	pausing    int // tasks in backoff
	lastCall   rateMeter

	stopping bool
	stopAt   time.Time // when handlers' contexts end
	pollEnd  time.Time // when receives are canceled
	canceled bool      // handlers' contexts have ended
	err      error     // why the run stops, if not because of its context
	unacked  int       // handled deliveries that were given up at the end
}

func newRun(ctx context.Context, c *Consumer, h Handler, d Description, hooks *notify.Queue) *run {
	o := &c.options
	r := &run{
		Consumer: c, handler: h, batch: h.most(o), arn: d.ARN, queue: d, hooks: hooks,
		brake:  &failure.Brake{Policy: o.OnFailure.policy()},
		parent: context.WithoutCancel(ctx), done: ctx.Done(), results: make(chan func(), 64), over: make(chan struct{}),
		flow:     flow{concurrency: o.Concurrency, mostBytes: o.MaxBytes, hold: o.Hold},
		polls:    retry.Backoff{Low: 200 * time.Millisecond, High: 30 * time.Second},
		inFlight: map[*poll]bool{}, deliveries: map[string]*delivery{}, finished: newMemory(), keys: map[string][]*task{},
	}
	r.calls, r.endCalls = context.WithCancel(r.parent)
	r.receives, r.endPolls = context.WithCancel(r.parent)
	return r
}

// start makes a goroutine for a call. The loop executes the function that work returns.
func (r *run) start(work func() func()) {
	go func() { r.post(work()) }()
}

// post passes a function to the loop, unless the loop has ended.
func (r *run) post(then func()) {
	select {
	case r.results <- then:
	case <-r.over:
	}
}

// loop runs until everything is finished after the end of the context.
func (r *run) loop() error {
	defer close(r.over)
	defer r.endCalls()
	defer r.endPolls()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := time.Now()
		next := r.step(now)
		if r.stopping && (r.idle() || !now.Before(r.stopAt.Add(abandonAfter))) {
			return r.result()
		}
		if next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(max(next.Sub(now), 0))
		}
		select {
		case then := <-r.results:
			then()
			r.drain()
		case <-timer.C:
		case <-r.done:
			r.stop(nil)
		}
	}
}

// drain executes the functions that are already in results.
func (r *run) drain() {
	for range cap(r.results) {
		select {
		case then := <-r.results:
			then()
		default:
			return
		}
	}
}

// step does everything that is due, and returns when the next step is due.
func (r *run) step(now time.Time) (next time.Time) {
	r.stopSteps(now)
	for t, ok := r.pauses.pop(now); ok; t, ok = r.pauses.pop(now) {
		t.enter(r, taskWaiting)
	}
	r.keepHolds(now)
	r.handle(now)
	r.admit()
	r.receive(now)
	next = r.acknowledge(now)
	r.release()
	next = earlier(next, r.pauses.next())
	next = earlier(next, r.holds.next())
	if now.Before(r.pollAgain) {
		next = earlier(next, r.pollAgain)
	}
	if r.stopping {
		for _, at := range []time.Time{r.pollEnd, r.stopAt, r.stopAt.Add(abandonAfter)} {
			if at.After(now) {
				next = earlier(next, at)
			}
		}
	}
	r.count(func(n *Counts) { n.InFlight, n.Handling, n.Bytes = len(r.deliveries), r.ready, r.flow.bytes })
	return next
}

// idle reports whether nothing is outstanding.
func (r *run) idle() bool {
	return len(r.deliveries) == 0 && r.flow.calls == 0 && r.ready == 0 && r.storing == 0 && r.extending == 0 &&
		r.acks.calls == 0 && r.releasing == 0 && len(r.releases) == 0 && !r.checking
}

// stop begins to stop. err is the result of Run.
func (r *run) stop(err error) {
	r.err = errors.Join(r.err, err)
	if r.stopping {
		return
	}
	now := time.Now()
	r.stopping, r.done = true, nil
	r.Consumer.stand(func(s *standing) { s.stopping = true })
	r.stopAt = now.Add(r.options.StopTimeout)
	r.pollEnd = earlier(now.Add(pollGrace), r.stopAt)
	for _, d := range r.all() {
		r.leave(d)
	}
}

// all returns the deliveries, so that the caller may remove some.
func (r *run) all() []*delivery {
	all := make([]*delivery, 0, len(r.deliveries))
	for _, d := range r.deliveries {
		all = append(all, d)
	}
	return all
}

// leave ends a delivery that is not finished before a stop. It releases the delivery if no handler
// has started it. If its records are in backoff, leave drops the delivery, and the hold ends by
// itself. Other deliveries stay.
func (r *run) leave(d *delivery) {
	switch {
	case d.untouched() && releaseAtStop(d.ReceiveCount, r.queue.Attributes.MaxReceiveCount):
		r.spend(d)
		r.letGo(d, 0)
	case d.phase() == Backoff:
		r.drop(d)
	}
}

// stopSteps cancels receives and the contexts of handlers when a stop has lasted long enough.
func (r *run) stopSteps(now time.Time) {
	if !r.stopping {
		return
	}
	if !now.Before(r.pollEnd) {
		r.endPolls()
	}
	if now.Before(r.stopAt) || r.canceled {
		return
	}
	r.canceled = true
	for _, d := range r.all() {
		for _, t := range d.tasks {
			if t.cancel != nil {
				t.cancel(weir.ErrStopping)
			}
		}
		if d.phase() == Waiting {
			r.spend(d)
			r.letGo(d, 0)
		}
	}
}

// result returns the error of Run when the loop ends.
func (r *run) result() error {
	err := r.err
	if r.ready > 0 || r.storing > 0 {
		err = errors.Join(err, fmt.Errorf("%w: %d calls", weir.ErrAbandoned, r.ready+r.storing))
	}
	for _, d := range r.deliveries {
		switch {
		case d.acking:
			r.unacked++
		case !d.hold.lost: // an abandoned handler has it
			r.spend(d)
		}
	}
	if r.unacked > 0 {
		err = errors.Join(err, fmt.Errorf("%w: %d records; the queue delivers them again", ErrNotAcknowledged, r.unacked))
	}
	return err
}

// tell calls a function of Options.Events in the goroutine of events.
func tell[E any](r *run, hook func(context.Context, E), e E) {
	if hook != nil {
		r.hooks.Add(notify.Detail, nil, func() { hook(context.Background(), e) })
	}
}
