// Package notify calls the user's hooks and logger without ever waiting for them. Calls go through
// a queue of limited size. One goroutine makes them one after the other.
package notify

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/weir-go/weir/internal/lock"
)

// Class determines what happens to a call if the queue is full.
type Class uint8

const (
	// Detail calls are dropped and counted.
	Detail Class = iota
	// Important calls are only dropped if there are four times as many calls as the queue has room
	// for.
	Important
	// State calls are not dropped before the queue is closed. If the queue is full, a State call
	// replaces a waiting call with the same key. The latest state therefore always arrives.
	State
)

// Counts are the numbers of calls that did not arrive since the queue was made.
type Counts struct {
	Dropped   uint64 // calls that were dropped
	Coalesced uint64 // State calls that a later one replaced
	Panicked  uint64 // calls that panicked
}

// Add adds the counts of another queue.
func (c *Counts) Add(other Counts) {
	c.Dropped += other.Dropped
	c.Coalesced += other.Coalesced
	c.Panicked += other.Panicked
}

// Queue contains waiting calls. They are made in the order in which they were added. Its methods
// may be called concurrently.
type Queue struct {
	limit  int
	limits []*limiter    // for Repeats, which is called before anything is logged
	wake   chan struct{} // contains an element while there is something to do
	done   chan struct{} // closed when Run has returned

	mu          lock.Mutex[lock.Queue]
	first, last *call
	unused      *call // list of at most limit calls for later use, by their field next
	nUnused     int
	n           int
	states      map[any]*call // waiting State calls, by key
	counts      Counts
	closed      bool
}

// call is an element of the list of waiting calls.
type call struct {
	what
	key        any // for a State call
	prev, next *call
}

// what contains the function to call: do, or pass with value.
type what struct {
	do    func()
	pass  func(any)
	value any
}

func (w what) make() {
	if w.pass != nil {
		w.pass(w.value)
	} else {
		w.do()
	}
}

// New returns a queue with room for limit calls. The caller must call Run.
func New(limit int) *Queue {
	return &Queue{limit: limit, wake: make(chan struct{}, 1), done: make(chan struct{}), states: map[any]*call{}}
}

// Add adds the call do. key identifies a [State] call and may be nil for other classes. Add never
// waits. It returns false if the call was dropped.
func (q *Queue) Add(class Class, key any, do func()) bool {
	return q.add(class, key, what{do: do})
}

// Pass adds the call pass(value), as Add does. It allocates no memory while the queue has unused
// elements.
func (q *Queue) Pass(class Class, key any, pass func(value any), value any) bool {
	return q.add(class, key, what{pass: pass, value: value})
}

func (q *Queue) add(class Class, key any, w what) bool {
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
	c := q.unused
	if c == nil {
		c = new(call)
	} else {
		q.unused, q.nUnused = c.next, q.nUnused-1
	}
	*c = call{what: w, prev: q.last}
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

// remove removes a call from the list, and keeps c for a later call. The caller holds the lock.
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
	*c = call{}
	if q.nUnused < q.limit {
		c.next, q.unused, q.nUnused = q.unused, c, q.nUnused+1
	}
}

// Counts returns the numbers of calls that did not arrive.
func (q *Queue) Counts() Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.counts
}

// Run makes the calls until the queue is closed and empty. If a call panics, Run calls failed in
// the same goroutine.
func (q *Queue) Run(failed func(error)) {
	defer close(q.done)
	for {
		w, some, over := q.take()
		switch {
		case some:
			if err := contained(w.make); err != nil {
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

func (q *Queue) take() (w what, some, over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.first
	if c == nil {
		return what{}, false, q.closed
	}
	w = c.what
	q.remove(c)
	return w, true, false
}

// Panic is the error for a call that panicked.
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

// Close stops accepting calls, and waits at most within until the earlier calls were made. It
// reports whether all of them were made. If not, the goroutine of Run ends when the current call
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
	for q.first != nil { // no call may be made after Run of the consumer has returned
		q.remove(q.first)
		q.counts.Dropped++
	}
	return false
}
