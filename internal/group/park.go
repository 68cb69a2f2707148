package group

import (
	"context"
	"errors"
	"time"
)

// These are the states of a reader. A reader with nothing to handle parks, so that its shard needs
// no goroutine. It starts again when there is something to handle, or when it must return. Without
// parking, ten thousand idle shards would need ten thousand stacks.
const (
	readerRuns  uint32 = iota
	readerWoken        // running, and must not park the next time
	readerParked
	readerDone
)

var (
	// errParked is the result of Park. The term never passes it on.
	errParked = errors.New("weir: the reader is parked")
	errGone   = errors.New("weir: the handler ended its goroutine")
)

// Resumer continues a parked reader.
type Resumer interface {
	// Resume continues reading. Its result is that of the reader: an error, nil, or the result of
	// Park.
	Resume() error
}

// Park parks a reader that has nothing to do. The reader must return the result of Park at once.
// The term calls next.Resume after a call of Wake, or when Reading ends. If Wake was called since
// the reader last started or resumed, the term resumes at once.
func (t *Term) Park(next Resumer) error {
	t.next = next
	return errParked
}

// Wake continues a parked reader. If the reader is running, it will not park the next time. Safe
// for concurrent use. Wake takes no mutex, so the caller may hold any.
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

// run executes the reader until it returns or parks. It begins with read, or resumes if read is
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

// park parks a reader that returned errParked. It returns nil if the reader is parked or has
// returned. If the reader must continue at once, it returns the Resumer to call.
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

// reading is the context that Term.Reading returns. Most readers only call its Err method, so its
// channel is allocated on demand. Otherwise a shard whose reader often parks would allocate a
// channel each time.
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
		// The parent is not the termContext. A child would make the termContext allocate its
		// channel, and the channel would stay in memory while the reader is parked.
		t.reading = await(t.stretch)
		t.isOver()
	}
	return t.reading
}

// ends notifies the reader of the end of Context or Reading.
func (t *Term) ends() {
	t.mu.Lock()
	t.isOver()
	t.mu.Unlock()
	t.Wake()
}

// isOver reports whether Reading must end, and if so ends it. The caller holds the lock.
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

// cause returns the cause of Context, or nil if it has not ended. The caller holds the lock.
func (t *Term) cause() error {
	switch {
	case !t.ended:
		return context.Cause(t.stretch)
	case t.seldom().why == nil:
		return context.Canceled
	}
	return t.rare.why
}

// termContext is the context that Term.Context returns. An idle shard only calls its Err method, so
// its channel is allocated on demand. Ten thousand cancellable contexts would take several MB.
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
		if t.ended { // check this first, because it has another cause
			from = context.WithoutCancel(from)
		}
		if r.waits = await(from); t.ended {
			r.waits.end(r.why)
		}
	}
	return r.waits
}
