package group

import (
	"context"
	"errors"
	"time"
)

// A reader whose shard has nothing to handle needs no goroutine. It parks, and is started again
// when there is something to handle or when it must return. Otherwise ten thousand idle shards
// would need ten thousand stacks.
const (
	readerRuns  uint32 = iota
	readerWoken        // it runs, and does not park the next time
	readerParked
	readerDone
)

var (
	// errParked is the result of Park. It never leaves the term.
	errParked = errors.New("weir: the reader is parked")
	errGone   = errors.New("weir: the handler ended its goroutine")
)

// Resumer is a parked reader.
type Resumer interface {
	// Resume continues reading. It returns like the reader that parked, or parks again.
	Resume() error
}

// Park is called by a reader that has nothing to do. The reader must return the result at once. The
// term later calls next in its place: when Wake is called, or at the latest when Reading ends. A
// Wake since the reader started or resumed counts.
func (t *Term) Park(next Resumer) error {
	t.next = next
	return errParked
}

// Wake makes a parked reader continue. A running reader does not park the next time. Safe for
// concurrent use. It takes no mutex, so the caller may hold any.
func (t *Term) Wake() {
	for {
		switch now := t.reader.Load(); now {
		case readerRuns:
			if t.reader.CompareAndSwap(now, readerWoken) {
				return
			}
		case readerParked:
			if t.reader.CompareAndSwap(now, readerRuns) {
				go t.goOn()
				return
			}
		default:
			return
		}
	}
}

func (t *Term) goOn() { t.run(nil) }

// run reads until the reader has returned or is parked. It begins with read, or resumes if read is
// nil.
func (t *Term) run(read func() error) {
	err := errGone
	defer func() {
		if !errors.Is(err, errParked) {
			t.reader.Store(readerDone)
			t.over(err)
		}
	}()
	for next := t.next; read != nil || next != nil; next = t.park(err) {
		if err = errGone; read != nil {
			err = read()
			read = nil
		} else {
			err = next.Resume()
		}
	}
}

// park parks a reader that returned errParked. If there is already a reason to continue, it returns
// the Resumer to run instead.
func (t *Term) park(err error) (next Resumer) {
	if !errors.Is(err, errParked) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isOver() {
		t.reader.Store(readerRuns)
		return t.next
	}
	reading := t.reading
	t.reading = nil // the reader may run again as soon as it is parked
	if !t.reader.CompareAndSwap(readerRuns, readerParked) {
		t.reading = reading
		t.reader.Store(readerRuns)
		return t.next
	}
	if reading != nil {
		reading.end(nil)
	}
	return nil
}

// reading is Term.Reading. Most readers only call its Err, so its channel is made on demand. A
// shard whose reader parks often would otherwise allocate one each time.
type reading Term

func (r *reading) Err() error {
	t := (*Term)(r)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isOver() {
		return context.Canceled
	}
	return nil
}

func (r *reading) Done() <-chan struct{}       { return r.context().Done() }
func (r *reading) Value(key any) any           { return r.context().Value(key) }
func (r *reading) Deadline() (time.Time, bool) { return time.Time{}, false }

func (r *reading) context() context.Context {
	t := (*Term)(r)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reading == nil {
		// Not derived from Context, which would keep its memory while the reader is parked.
		t.reading = await(t.stretch)
		t.isOver()
	}
	return t.reading
}

// ends notifies the reader that Context or Reading ends.
func (t *Term) ends() {
	t.mu.Lock()
	t.isOver()
	t.mu.Unlock()
	t.Wake()
}

// isOver reports whether Reading must end, and ends it. The caller holds the lock.
func (t *Term) isOver() bool {
	cause := t.cause()
	if !t.draining && cause == nil {
		return false
	}
	if t.reading != nil {
		t.reading.end(cause)
	}
	return true
}

// cause returns the cause with which Context ended, nil before that. The caller holds the lock.
func (t *Term) cause() error {
	switch {
	case !t.ended:
		return context.Cause(t.stretch)
	case t.seldom().why == nil:
		return context.Canceled
	}
	return t.rare.why
}

// termContext is Term.Context. An idle shard only calls its Err, so its channel is made on demand:
// ten thousand cancellable contexts take several MB.
type termContext Term

func (c *termContext) Err() error {
	t := (*Term)(c)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return context.Canceled
	}
	return t.stretch.Err()
}

func (c *termContext) Done() <-chan struct{}       { return c.context().Done() }
func (c *termContext) Value(key any) any           { return c.context().Value(key) }
func (c *termContext) Deadline() (time.Time, bool) { return time.Time{}, false }

func (c *termContext) context() context.Context {
	t := (*Term)(c)
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rarely()
	if r.waits == nil {
		from := t.stretch
		if t.ended { // checked first, because it has its own cause
			from = context.WithoutCancel(from)
		}
		if r.waits = await(from); t.ended {
			r.waits.end(r.why)
		}
	}
	return r.waits
}
