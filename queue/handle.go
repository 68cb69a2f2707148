package queue

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/guard"
	"github.com/weir-go/weir/internal/retry"
)

var errGoexit = errors.New("weir: the handler ended its goroutine with runtime.Goexit")

// handle starts handlers for waiting records.
func (r *run) handle(now time.Time) {
	for r.ready < r.options.Concurrency && !r.canceled {
		tasks := r.take()
		if len(tasks) == 0 {
			return
		}
		r.call(tasks, now)
	}
}

// take removes the records of the next call from the waiting ones.
func (r *run) take() (tasks []*task) {
	for len(r.waiting) > 0 && len(tasks) < r.batch {
		t := r.waiting[0]
		if t.state == taskWaiting && (t.alone || t.verdict != pass) && len(tasks) > 0 {
			return tasks
		}
		r.waiting[0], r.waiting = nil, r.waiting[1:]
		if t.state != taskWaiting {
			continue // it was dropped
		}
		tasks = append(tasks, t)
		t.enter(r, taskRunning)
		if t.alone || t.verdict != pass {
			return tasks
		}
	}
	return tasks
}

// call calls the handler in a goroutine.
func (r *run) call(tasks []*task, began time.Time) {
	ctx, cancel := context.WithCancelCause(r.parent)
	records := make([]Record, len(tasks))
	for i, t := range tasks {
		t.cancel, t.touched = cancel, true
		records[i] = t.rec
		records[i].ReceiveCount, records[i].Attempt = t.of.ReceiveCount, t.failures+1
	}
	r.ready++
	verdict := tasks[0].verdict // a record that did not pass is alone
	worked := r.brake.LastWorked()
	go func() {
		err := errGoexit
		var n filtered
		defer func() {
			if p := recover(); p != nil {
				err = &weir.PanicError{Who: "the handler", Value: p, Stack: string(debug.Stack())}
			}
			cancel(nil)
			end := time.Now()
			r.post(func() {
				r.tellFiltered(n, end)
				if n.dropped > 0 {
					r.dropped(tasks[0])
					return
				}
				r.handled(tasks, err, began, end, worked)
			})
		}()
		if verdict != pass {
			n, err = r.retryFilter(ctx, records, verdict)
			return
		}
		err = r.handler.handle(ctx, records)
	}()
}

// handled takes the result of a handler.
func (r *run) handled(tasks []*task, err error, began, end, worked time.Time) {
	r.ready--
	if cause, stop := weir.StopCause(err); stop {
		r.stop(cause)
		r.abandon(tasks)
		return
	}
	named, whole := failures(err)
	known := 0
	for _, t := range tasks {
		if named[t.rec.Key()] != nil {
			known++
		}
	}
	whole = whole || err != nil && known == 0
	failed := 0
	for _, t := range tasks {
		t.cancel = nil
		why := named[t.rec.Key()]
		counts := why != nil || len(tasks) == 1
		if why == nil && whole {
			why = err
		}
		if why == nil {
			r.finish(t)
			continue
		}
		failed++
		r.failedTask(t, why, counts, worked, end)
	}
	if n := len(tasks) - failed; n > 0 {
		r.brake.Works(began)
		r.flow.rate = r.lastCall.add(n, end)
	}
	r.stand(func(s *standing) { s.handled(failed < len(tasks), end) })
	took := end.Sub(began)
	r.flow.handling = average(r.flow.handling, took/time.Duration(len(tasks)))
	r.count(func(n *Counts) { n.Handled += len(tasks) - failed; n.Failed += failed })
	tell(r, r.options.Events.Handled, Handled{Time: began, Took: took, Records: len(tasks), Failed: failed, Err: err})
}

// abandon leaves the records of a call that stops Run to the queue. They are delivered again when
// their holds end.
func (r *run) abandon(tasks []*task) {
	for _, t := range tasks {
		t.cancel = nil
		t.enter(r, taskGone)
	}
	for _, t := range tasks {
		r.settle(t.of)
	}
}

// finish marks a record as done.
func (r *run) finish(t *task) {
	t.enter(r, taskDone)
	t.of.left--
	r.settle(t.of)
}

// settle decides the next step of a delivery after the state of one of its records has changed.
func (r *run) settle(d *delivery) {
	switch {
	case d.left == 0 && !d.acking:
		r.complete(d)
	case (d.hold.lost || r.canceled) && d.phase() != Handling && !d.acking:
		if !d.hold.lost { // otherwise it was counted when the hold was lost
			r.spend(d)
		}
		r.drop(d)
	case r.stopping:
		r.leave(d)
	}
}

// failedTask decides what follows the failure of a record. counts is false if another record of the
// call may have failed.
func (r *run) failedTask(t *task, err error, counts bool, worked, now time.Time) {
	d := t.of
	if d.hold.lost || r.canceled {
		t.enter(r, taskGone)
		r.settle(d)
		return
	}
	t.note(err, counts, now)
	t.alone = !counts
	if counts {
		aside, why := t.released != "", t.released // then it was judged before, and has come back
		if !aside {
			aside, why = judge(r.brake, &t.history, weir.IsRejected(err), now.Sub(d.Arrived), worked, now)
		}
		if aside {
			r.setAside(t, why, now)
			return
		}
	}
	r.pause(t, now)
}

// pause makes a failed record wait before it is handled again.
func (r *run) pause(t *task, now time.Time) {
	t.enter(r, taskPausing)
	r.pauses.set(t, now.Add(retry.Pause(r.options.MinBackoff, r.options.MaxBackoff, max(t.failures, 1))))
	r.settle(t.of)
}

// setAside stores the dead letter of a record, or leaves the record to the queue.
func (r *run) setAside(t *task, why deadletter.Reason, now time.Time) {
	d := t.of
	tellAside := func(stored bool) {
		r.count(func(n *Counts) { n.SetAside++ })
		tell(r, r.options.Events.SetAside, SetAside{Time: now, Record: t.rec.Key(), Reason: why, Attempts: t.attempts, Stored: stored, Err: t.err})
		r.options.Logger.Warn("a record was set aside", "queue", r.options.Queue, "record", t.rec.Key(), "reason", why, "attempts", t.attempts, "err", t.err)
	}
	to := r.options.OnFailure.Destination
	if to == nil {
		tellAside(false)
		t.enter(r, taskGone)
		d.aside, t.aside, t.released = true, true, why
		d.left--
		r.settle(d)
		return
	}
	t.enter(r, taskStoring)
	r.storing++
	letter := r.letter(t, why, now)
	ctx, cancel := context.WithCancelCause(r.calls)
	t.cancel = cancel
	r.start(func() func() {
		err := errGoexit
		ended := make(chan struct{})
		go func() { // Put may end its goroutine
			defer close(ended)
			err = guard.Call(func() error { return to.Put(ctx, []deadletter.Letter{letter}) })
		}()
		<-ended
		return func() {
			r.storing--
			cancel(nil)
			t.cancel = nil
			if err != nil {
				r.failed(err, "a dead letter could not be stored; its record stays in the queue and is handled again")
				r.storeFailed(t)
				return
			}
			r.brake.Took(1, time.Now())
			tellAside(true)
			r.finish(t)
		}
	})
}

// storeFailed delays a record whose dead letter could not be stored.
func (r *run) storeFailed(t *task) {
	if t.of.hold.lost || r.canceled {
		t.enter(r, taskGone)
		r.settle(t.of)
		return
	}
	r.pause(t, time.Now())
}

// letter makes the dead letter of a record.
func (r *run) letter(t *task, why deadletter.Reason, now time.Time) deadletter.Letter {
	worker, _ := os.Hostname() // only a hint for operators
	position := t.rec.Key()
	l := deadletter.Letter{
		Version: deadletter.Version, Stream: r.arn, Shard: deadletter.QueueShard, Position: position,
		PartitionKey: t.rec.PartitionKey, Arrived: t.rec.Arrived, Data: t.rec.Data,
		App: r.options.App, Worker: worker + "/" + strconv.Itoa(os.Getpid()),
		GivenUp: now, Reason: why, Attempts: t.attempts, FirstFailure: t.first, LastFailure: t.latest, Together: 1,
	}
	l.ID = deadletter.ID(l.App, l.RecordID())
	stack := ""
	if p := (*weir.PanicError)(nil); errors.As(t.err, &p) {
		stack = p.Stack
	}
	l.Describe(t.err, stack)
	return l
}

// rateMeter measures how many records are handled per second.
type rateMeter struct {
	since time.Time
	n     int
	rate  float64
}

// add counts records and returns the rate.
func (m *rateMeter) add(n int, now time.Time) float64 {
	if m.since.IsZero() {
		m.since = now
	}
	m.n += n
	if d := now.Sub(m.since); d >= 100*time.Millisecond {
		m.rate = (m.rate + float64(m.n)/d.Seconds()) / 2
		m.n, m.since = 0, now
	}
	return m.rate
}
