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
	woken chan struct{} // contains an element after the queue woke the waiter
}

// Woken returns a channel that signals when the receive should be carried out again. The signal may
// be spurious.
func (w *Waiter) Woken() <-chan struct{} { return w.woken }

// await adds a waiter to the queue. The caller holds e.mu.
func (q *queue) await(after time.Duration) *Waiter {
	w := &Waiter{After: after, queue: q, woken: make(chan struct{}, 1)}
	q.waiting = append(q.waiting, w)
	return w
}

// wake wakes the receive that has waited for the longest time.
func (q *queue) wake() {
	if len(q.waiting) > 0 {
		q.waiting[0].woken <- struct{}{} // has room, because a waiter is woken once
		q.waiting[0] = nil
		q.waiting = q.waiting[1:]
	}
}

func (q *queue) wakeAll() {
	for len(q.waiting) > 0 {
		q.wake()
	}
}

// leave ends a wait. If the waiter was woken, it returns true: another one has to be woken in its
// place, unless the caller carries out the receive.
func (q *queue) leave(w *Waiter) (woken bool) {
	if i := slices.Index(q.waiting, w); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
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
