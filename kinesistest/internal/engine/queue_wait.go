package engine

import (
	"slices"
	"time"
)

// Waiter is a receive that waits for a visible record.
type Waiter struct {
	// After is the time until the receive has to be carried out again, unless Woken signals
	// earlier.
	After time.Duration
	queue *queue
	on    path
	woken chan struct{} // contains an element after the queue woke the waiter
}

// Woken returns a channel that signals when the receive should be carried out again. The signal may
// be spurious.
func (w *Waiter) Woken() <-chan struct{} { return w.woken }

// await adds a waiter to the queue. The caller holds e.mu.
func (q *queue) await(on path, after time.Duration) *Waiter {
	w := &Waiter{After: after, queue: q, on: on, woken: make(chan struct{}, 1)}
	q.waiting[on] = append(q.waiting[on], w)
	return w
}

// wake wakes the receive of each path that has waited for the longest time.
func (q *queue) wake() {
	for on, waiters := range q.waiting {
		if len(waiters) > 0 {
			waiters[0].woken <- struct{}{} // has room, because a waiter is woken once
			waiters[0] = nil
			q.waiting[on] = waiters[1:]
		}
	}
}

func (q *queue) wakeAll() {
	for q.waiters() > 0 {
		q.wake()
	}
}

func (q *queue) waiters() int { return len(q.waiting[normalPath]) + len(q.waiting[deadPath]) }

// leave ends a wait. If the waiter was woken, it returns true: another one has to be woken in its
// place, unless the caller carries out the receive.
func (q *queue) leave(w *Waiter) (woken bool) {
	if i := slices.Index(q.waiting[w.on], w); i >= 0 {
		q.waiting[w.on] = slices.Delete(q.waiting[w.on], i, i+1)
	}
	return len(w.woken) > 0
}

// StopWaiting ends the wait of a receive that is not carried out again, because its client has
// disconnected.
func (e *Engine) StopWaiting(w *Waiter) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.queue.leave(w) {
		w.queue.wake()
	}
}

// wakeQueues wakes one waiting receive in each queue of s, because a record arrived.
func (s *stream) wakeQueues() {
	for _, q := range s.queues {
		q.wake()
	}
}
