package engine

import (
	"container/heap"
	"time"
)

// QueueRules are the behaviours of queues that the service does not document. The zero value, apart
// from MaxInFlight, is the default. kinesistest.QueueConfig describes the fields.
type QueueRules struct {
	AcceptExpired          bool
	AcceptSuperseded       bool
	AcceptRepeated         bool
	DeadOnReceive          bool
	KeepDeadLetterCount    bool
	CountDeadLetters       bool
	MaxInFlight            int
	ThrottleInFlight       bool
	MaxHold                time.Duration
	MaxAnswerBytes         int64
	FillBatch              bool
	LatestAtCreation       bool
	EmptyUnlessActive      bool
	Ordered                bool
	ForgetAcknowledgements int
}

// place identifies a record of a stream.
type place struct {
	shard uint32 // number
	index uint64 // in the shard
}

// path is one of the two ways in which a queue delivers a record.
type path int

const (
	normalPath path = iota
	deadPath        // dead letters
)

// delivery is the state of a record that a queue has delivered, and that was not acknowledged.
type delivery struct {
	place
	path   path
	count  int       // receives without an acknowledgement
	number uint64    // number of the last delivery, which its receipt handle contains
	first  time.Time // first receive
	last   time.Time // last receive
	until  time.Time // the record is hidden until this time
	hidden bool      // the delivery is in the heap of hidden deliveries, not of visible ones
	at     int       // position in that heap
}

// ledger contains the state of all records that a queue has delivered and that were not
// acknowledged. It stores nothing about other records. It is a state machine without a clock: the
// caller passes the time, and calls settle before every other method.
type ledger struct {
	rules      QueueRules
	deliveries map[place]*delivery
	hidden     [2]deliveryHeap // by path; in flight
	visible    [2]deliveryHeap // by path; their hold has ended
	numbers    uint64          // number of the last delivery
}

func newLedger(rules QueueRules) *ledger {
	return &ledger{rules: rules, deliveries: map[place]*delivery{}}
}

// settle makes deliveries visible whose hold has ended. A record that was received most times
// becomes a dead letter; 0 means that the queue has no dead letters.
func (l *ledger) settle(now time.Time, most int) {
	for p := range l.hidden {
		for len(l.hidden[p]) > 0 && !l.hidden[p][0].until.After(now) {
			d := l.hidden[p][0]
			l.remove(d)
			l.expose(d, most)
		}
	}
}

// expose makes a delivery visible that is in no heap.
func (l *ledger) expose(d *delivery, most int) {
	if !l.rules.DeadOnReceive && spent(d, most) {
		d.path = deadPath
	}
	d.hidden = false
	heap.Push(&l.visible[d.path], d)
}

// spent reports whether the next receive of a record would exceed the maximum.
func spent(d *delivery, most int) bool {
	return d.path == normalPath && most > 0 && d.count >= most
}

// fresh delivers a record for the first time.
func (l *ledger) fresh(p place, now time.Time, timeout time.Duration) *delivery {
	d := &delivery{place: p, first: now}
	l.deliveries[p] = d
	l.hold(d, now, timeout)
	return d
}

// oldest returns the record that has been visible for the longest time, or nil if no record is
// visible. It forgets records that exist reports to be gone.
func (l *ledger) oldest(on path, most int, exists func(place) bool) *delivery {
	for len(l.visible[on]) > 0 {
		d := l.visible[on][0]
		switch {
		case !exists(d.place):
			l.forget(d)
		case spent(d, most):
			l.remove(d)
			d.path = deadPath
			heap.Push(&l.visible[deadPath], d)
		default:
			return d
		}
	}
	return nil
}

// again delivers a visible record that was delivered before.
func (l *ledger) again(d *delivery, now time.Time, timeout time.Duration) {
	l.remove(d)
	l.hold(d, now, timeout)
}

// hold hides a delivery that is in no heap, because the record was received.
func (l *ledger) hold(d *delivery, now time.Time, timeout time.Duration) {
	l.numbers++
	d.number, d.last = l.numbers, now
	if d.path == normalPath || !l.rules.KeepDeadLetterCount {
		d.count++
	}
	l.hide(d, now.Add(timeout))
}

func (l *ledger) hide(d *delivery, until time.Time) {
	d.until, d.hidden = until, true
	heap.Push(&l.hidden[d.path], d)
}

// remove removes a delivery from its heap.
func (l *ledger) remove(d *delivery) {
	if d.hidden {
		heap.Remove(&l.hidden[d.path], d.at)
	} else {
		heap.Remove(&l.visible[d.path], d.at)
	}
}

// find returns the delivery to which a receipt handle belongs. If the handle is no longer valid, it
// returns nil and the reason.
func (l *ledger) find(p place, number uint64, on path, now time.Time) (d *delivery, reason string) {
	d = l.deliveries[p]
	switch {
	case d == nil:
		return nil, "the record was acknowledged"
	case d.path != on && on == normalPath:
		return nil, "the record became a dead letter"
	case d.path != on:
		return nil, "the record was restored"
	case d.number != number && !l.rules.AcceptSuperseded:
		return nil, "the record was received again"
	case !d.until.After(now) && !l.rules.AcceptExpired && !l.rules.AcceptSuperseded:
		return nil, "its visibility timeout has ended"
	}
	return d, ""
}

// forget removes the state of a record, because it was acknowledged or left the stream.
func (l *ledger) forget(d *delivery) {
	l.remove(d)
	delete(l.deliveries, d.place)
}

// extend hides a record for another time, counted from now. 0 makes the record visible.
func (l *ledger) extend(d *delivery, now time.Time, timeout time.Duration, most int) {
	l.remove(d)
	if timeout > 0 {
		l.hide(d, now.Add(timeout))
		return
	}
	d.until = now
	l.expose(d, most)
}

// restore moves a dead letter back to the normal path, as if it had never been received.
func (l *ledger) restore(d *delivery, now time.Time) {
	l.remove(d)
	d.path, d.count, d.until, d.hidden = normalPath, 0, now, false
	heap.Push(&l.visible[normalPath], d)
}

// inFlight returns the number of records that count against the limit.
func (l *ledger) inFlight() int {
	n := len(l.hidden[normalPath])
	if l.rules.CountDeadLetters {
		n += len(l.hidden[deadPath])
	}
	return n
}

// next returns when the next hold ends. It returns false if no record is hidden.
func (l *ledger) next() (at time.Time, ok bool) {
	for _, h := range l.hidden {
		if len(h) > 0 && (!ok || h[0].until.Before(at)) {
			at, ok = h[0].until, true
		}
	}
	return at, ok
}

// sweep forgets all records that are gone from the stream.
func (l *ledger) sweep(exists func(place) bool) {
	for p, d := range l.deliveries {
		if !exists(p) {
			l.forget(d)
		}
	}
}

// deliveryHeap is a heap of deliveries: the first one has the earliest until. It implements
// heap.Interface.
type deliveryHeap []*delivery

func (h deliveryHeap) Len() int { return len(h) }

func (h deliveryHeap) Less(i, j int) bool {
	if !h[i].until.Equal(h[j].until) {
		return h[i].until.Before(h[j].until)
	}
	return h[i].number < h[j].number
}

func (h deliveryHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *deliveryHeap) Push(x any) {
	d := x.(*delivery)
	d.at = len(*h)
	*h = append(*h, d)
}

func (h *deliveryHeap) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return d
}
