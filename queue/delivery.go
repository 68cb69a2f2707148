package queue

import (
	"context"
	"time"

	"github.com/weir-go/weir/aggregate"
)

// delivery is a record or aggregate that this process has received and still has.
type delivery struct {
	timed // when the next step of its hold is due
	Delivery
	hold     hold
	tasks    []*task // one for each record
	left     int     // tasks that are not done and not set aside
	size     int64   // bytes that it has in the memory budget
	aside    bool    // one of its records was set aside without a destination
	late     bool    // its hold was lost while a handler had it
	acking   bool    // it is handled and waits for its acknowledgement
	sending  bool    // its acknowledgement is in flight
	ackAt    time.Time
	ackFails int
}

// state is the state of one record of a delivery.
type state uint8

const (
	taskNew     state = iota
	taskWaiting       // for a handler
	taskBlocked       // by an earlier record of its key
	taskRunning
	taskPausing // it failed
	taskStoring // its dead letter is being stored
	taskDone
	taskGone // its delivery was dropped or its hold was lost
)

// task is one record to handle.
type task struct {
	timed // when its backoff ends
	of    *delivery
	rec   Record
	state state
	history
	alone   bool    // it needs a call of its own, to find out which record fails
	verdict verdict // with refuse or unread it gets a call of its own, in place of the handler's
	touched bool    // a handler got it
	aside   bool    // it was set aside without a destination
	cancel  context.CancelCauseFunc
}

// enter changes the state of a task.
func (t *task) enter(r *run, s state) {
	r.tally(t.state, -1)
	if t.state == taskPausing {
		r.pauses.set(t, time.Time{})
	}
	t.state = s
	r.tally(s, 1)
	switch s {
	case taskWaiting:
		r.waiting = append(r.waiting, t)
	case taskDone, taskGone:
		r.unblock(t)
	}
}

// tally counts the tasks that handlers will need soon, and those in backoff.
func (r *run) tally(s state, n int) {
	switch s {
	case taskWaiting, taskBlocked, taskRunning, taskStoring:
		r.active += n
	case taskPausing:
		r.pausing += n
	}
}

// begin makes a task wait, behind the earlier tasks of its key if keys are handled in order. A
// record that has spent more than half of its receives gets a call of its own: with others, it
// could lose its hold each time because the whole call takes longer than MaxHold.
func (t *task) begin(r *run) {
	t.alone = t.alone || !releaseAtStop(t.of.ReceiveCount, r.queue.Attributes.MaxReceiveCount)
	key := t.rec.PartitionKey
	if !r.options.OrderByKey || key == "" {
		t.enter(r, taskWaiting)
		return
	}
	r.keys[key] = append(r.keys[key], t)
	if len(r.keys[key]) > 1 {
		t.enter(r, taskBlocked)
		return
	}
	t.enter(r, taskWaiting)
}

// unblock removes a task from its key, and lets the next one wait for a handler.
func (r *run) unblock(t *task) {
	key := t.rec.PartitionKey
	line, ok := r.keys[key]
	if !ok {
		return
	}
	for i, other := range line {
		if other != t {
			continue
		}
		rest := append(line[:i:i], line[i+1:]...)
		if len(rest) == 0 {
			delete(r.keys, key)
			return
		}
		r.keys[key] = rest
		if i == 0 {
			rest[0].enter(r, taskWaiting)
		}
		return
	}
}

// phase returns the phase of a delivery.
func (d *delivery) phase() Phase {
	if d.acking {
		return Acknowledging
	}
	p := Backoff
	for _, t := range d.tasks {
		switch t.state {
		case taskRunning, taskStoring:
			return Handling
		case taskWaiting, taskBlocked:
			p = Waiting
		}
	}
	return p
}

// untouched reports whether no handler has got a record of the delivery.
func (d *delivery) untouched() bool {
	for _, t := range d.tasks {
		if t.touched {
			return false
		}
	}
	return !d.acking
}

// arrive takes a received record.
func (r *run) arrive(rec Delivery, parts []part, at time.Time) {
	h := newHold(at, r.options.Hold, r.options.MaxHold)
	r.count(func(n *Counts) { n.Received++ })
	if d := r.deliveries[rec.RecordID]; d != nil {
		r.count(func(n *Counts) { n.Redelivered++ })
		d.ReceiptHandle, d.ReceiveCount = rec.ReceiptHandle, rec.ReceiveCount
		r.revive(d, h)
		return
	}
	d := &delivery{Delivery: rec, hold: h, size: int64(len(rec.Data))}
	r.deliveries[rec.RecordID] = d
	r.flow.bytes += d.size
	r.flow.largest = max(r.flow.largest, d.size, 1) // 0 means unknown
	r.holds.set(d, h.next)
	done := r.finished.of(rec.RecordID)
	if done != nil {
		r.count(func(n *Counts) { n.Redelivered++ })
	}
	if done == nil || !done.all {
		for _, p := range parts {
			d.tasks = append(d.tasks, &task{of: d, rec: p.rec, verdict: p.verdict})
		}
		for i, t := range d.tasks {
			if done != nil && done.subs[t.rec.Sub] || parts[i].verdict == drop {
				t.state = taskDone
				continue
			}
			if done != nil {
				t.history = done.failed[t.rec.Sub]
			}
			d.left++
			t.begin(r)
		}
	}
	d.Data = nil // the tasks have it
	if d.left == 0 {
		r.complete(d)
	}
	if r.stopping {
		r.leave(d)
	}
}

// revive starts the new hold of a delivery that has arrived again. Records that were given up with
// the old hold are handled again. Records that were set aside, and those whose handlers still run,
// are not.
func (r *run) revive(d *delivery, h hold) {
	d.hold = h
	r.holds.set(d, h.next)
	for _, t := range d.tasks {
		if t.state == taskGone && !t.aside {
			t.begin(r)
		}
	}
}

// complete continues with a delivery whose records are all done or set aside.
func (r *run) complete(d *delivery) {
	r.forgetData(d)
	if d.aside {
		r.letGo(d, releaseDelay(r.queue.Attributes.DeadLetters, d.ReceiveCount))
		return
	}
	d.acking, d.ackAt = true, time.Now().Add(ackDelay(r.options.AckDelay, r.flow.handling, r.options.Hold, r.options.Concurrency))
	if d.hold.lost || d.hold.failures > 0 || d.hold.last().Before(d.ackAt) {
		d.ackAt = time.Now()
	}
	r.acks.queue = append(r.acks.queue, d)
}

// forgetData frees the data of a delivery.
func (r *run) forgetData(d *delivery) {
	r.flow.bytes -= d.size
	d.size = 0
	for _, t := range d.tasks {
		t.rec.Data, t.rec.Tags = nil, aggregate.Tags{}
	}
}

// drop forgets a delivery, and remembers which of its records are done and which failed.
func (r *run) drop(d *delivery) {
	if r.deliveries[d.RecordID] == d {
		delete(r.deliveries, d.RecordID)
	}
	r.holds.set(d, time.Time{})
	for _, t := range d.tasks {
		if t.failures > 0 && t.state != taskDone {
			r.finished.addFailed(d.RecordID, t.rec.Sub, t.history)
		}
		switch t.state {
		case taskDone:
			if len(d.tasks) > 1 && !d.acking {
				r.finished.add(d.RecordID, t.rec.Sub)
			}
		case taskGone:
		default:
			t.enter(r, taskGone)
		}
	}
	r.forgetData(d)
}

// spend counts the receive of a delivery that returns to the queue, unless one of its records has
// failed.
func (r *run) spend(d *delivery) {
	for _, t := range d.tasks {
		if t.failures > 0 {
			return
		}
	}
	r.count(func(n *Counts) { n.Spent++ })
}

// letGo drops a delivery and makes it visible after a delay.
func (r *run) letGo(d *delivery, delay time.Duration) {
	r.drop(d)
	r.count(func(n *Counts) { n.Released++ })
	r.releases = append(r.releases, release{d.ReceiptHandle, delay})
}
