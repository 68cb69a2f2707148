// Package notify tells the user's code what happens without ever waiting for it: calls of hooks and
// of a logger go through a queue of bounded size, and are made one after the other by one
// goroutine.
package notify

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/weir-go/weir/internal/lock"
)

// Class says what becomes of a call for which there is no room.
type Class uint8

const (
	// Detail is dropped, and counted.
	Detail Class = iota
	// Important is dropped only when there are four times as many calls as there is room for.
	Important
	// State takes the place of the call of the same key that still waits, and is never dropped:
	// what arrives is the latest state. With room, every one arrives.
	State
)

// Counts are what did not arrive, since the queue was made.
type Counts struct {
	Dropped   uint64 // Detail and Important
	Coalesced uint64 // State, in whose place a later one came
	Panicked  uint64 // calls that panicked
}

// Add adds the counts of another queue.
func (c *Counts) Add(other Counts) {
	c.Dropped += other.Dropped
	c.Coalesced += other.Coalesced
	c.Panicked += other.Panicked
}

// Queue holds calls that are to be made. They are made in the order in which they were added. Its
// methods may be called concurrently.
type Queue struct {
	limit  int
	limits []*limiter    // of Repeats, which is called before anything is logged
	wake   chan struct{} // has one element when there is something to do
	done   chan struct{} // closed when Run has returned

	mu          lock.Mutex[lock.Queue]
	first, last *call
	n           int
	states      map[any]*call // that wait, by key
	counts      Counts
	closed      bool
}

// call is one in the list of those that wait.
type call struct {
	do         func()
	key        any // of a State
	prev, next *call
}

// New makes a queue with room for limit calls. Run has to be called.
func New(limit int) *Queue {
	return &Queue{limit: limit, wake: make(chan struct{}, 1), done: make(chan struct{}), states: map[any]*call{}}
}

// Add has do called. key tells the states of a [State] call apart, and may be nil for others. It
// never waits. It reports false if the call was dropped.
func (q *Queue) Add(class Class, key any, do func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	full := q.n >= q.limit
	switch {
	case q.closed, class == Detail && full, class == Important && q.n >= 4*q.limit:
		q.counts.Dropped++
		return false
	case class == State && full:
		if before := q.states[key]; before != nil {
			q.remove(before)
			q.counts.Coalesced++
		}
	}
	c := &call{do: do, prev: q.last}
	if class == State {
		c.key = key
		q.states[key] = c
	}
	if q.last == nil {
		q.first = c
	} else {
		q.last.next = c
	}
	q.last = c
	q.n++
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

// remove takes a call out of the list. It is called with the lock held.
func (q *Queue) remove(c *call) {
	if c.prev == nil {
		q.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		q.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	q.n--
	if c.key != nil && q.states[c.key] == c {
		delete(q.states, c.key)
	}
}

// Counts says what did not arrive.
func (q *Queue) Counts() Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.counts
}

// Run makes the calls until the queue is closed and empty. A call that panics is told to failed, by
// the goroutine that runs.
func (q *Queue) Run(failed func(error)) {
	defer close(q.done)
	for {
		c, over := q.take()
		switch {
		case c != nil:
			if err := contained(c.do); err != nil {
				q.mu.Lock()
				q.counts.Panicked++
				q.mu.Unlock()
				failed(err)
			}
		case over:
			return
		default:
			<-q.wake
		}
	}
}

func (q *Queue) take() (c *call, over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c = q.first; c != nil {
		q.remove(c)
	}
	return c, c == nil && q.closed
}

// Panic is a panic of a call, as an error.
type Panic struct {
	Value any
	Stack string
}

func (p *Panic) Error() string { return fmt.Sprintf("panicked: %v", p.Value) }

func contained(do func()) (err error) {
	lock.Free("a hook or the logger")
	defer func() {
		if p := recover(); p != nil {
			err = &Panic{p, string(debug.Stack())}
		}
	}()
	do()
	return nil
}

// Close lets nothing more in and waits for the calls that were added before, for so long at most.
// It reports whether all were made; otherwise the goroutine of Run goes on when the one under way
// returns.
func (q *Queue) Close(within time.Duration) bool {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-q.done:
		return true
	case <-timer.C:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.first != nil { // nobody is to be called once Run of the consumer has returned
		q.remove(q.first)
		q.counts.Dropped++
	}
	return false
}
