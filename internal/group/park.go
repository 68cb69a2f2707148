package group

import (
	"context"
	"errors"
	"time"
)

// A reader whose shard has nothing to handle needs no goroutine: it parks, and is begun again when
// there is something, or when it has to return. Ten thousand idle shards would otherwise cost as
// many stacks.
const (
	readerRuns  uint32 = iota
	readerWoken        // it runs, and is not to be parked the next time
	readerParked
	readerDone
)

var (
	// errParked is what Park returns; it never leaves the term.
	errParked = errors.New("weir: the reader is parked")
	errGone   = errors.New("weir: the handler ended its goroutine")
)

// Resumer is a reader that was parked.
type Resumer interface {
	// Resume reads on. It returns as the reader that parked would have, or parks again.
	Resume() error
}

// Park is for a reader that has nothing to do. It returns at once what Park returns; next goes on
// in its place, as late as possible: when Wake was called, or when Reading ends. A Wake since the
// reader began or went on counts.
func (t *Term) Park(next Resumer) error {
	t.next = next
	return errParked
}

// Wake makes a parked reader continue; a running one does not park the next time. Safe for
// concurrent use. It takes no mutex, so it may be called with any of them held.
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

// run reads until the reader has returned or is parked: it begins with read, or goes on if that is
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

// park parks a reader that returned with err, unless that is no wish to, or was overtaken by a
// reason to go on: then it returns what with.
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

// reading is Term.Reading. Most readers only ever ask it for Err, so what one waits with is made
// when one does; a shard whose reader parks often would pay for it each time.
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
		// Not made from Context, which would keep the room for it while the reader is parked.
		t.reading = await(t.stretch)
		t.isOver()
	}
	return t.reading
}

// ends has the reader notice that Context or Reading is to end.
func (t *Term) ends() {
	t.mu.Lock()
	t.isOver()
	t.mu.Unlock()
	t.Wake()
}

// isOver reports whether Reading is to end, and sees to it. It is called with the lock held.
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

// cause is that of the end of Context, nil before. It is called with the lock held.
func (t *Term) cause() error {
	switch {
	case !t.ended:
		return context.Cause(t.stretch)
	case t.seldom().why == nil:
		return context.Canceled
	}
	return t.rare.why
}

// termContext is Term.Context. An idle shard only ever asks it for Err, so what one waits with is
// made when one does: ten thousand contexts that can be waited for are several MB.
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
		if t.ended { // first, and with its own cause
			from = context.WithoutCancel(from)
		}
		if r.waits = await(from); t.ended {
			r.waits.end(r.why)
		}
	}
	return r.waits
}
