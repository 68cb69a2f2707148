package group

import (
	"context"
	"errors"
)

// A reader whose shard has nothing to handle needs no goroutine: it parks, and is begun again when there is something, or when it has
// to return. Ten thousand idle shards would otherwise cost as many stacks.
type readerState uint8

const (
	readerRuns readerState = iota
	readerParked
	readerDone
)

// errParked is what Park returns; it never leaves the term.
var errParked = errors.New("weir: the reader is parked")

// Park is for a reader that has nothing to do. It returns at once what Park returns; next goes on in its place, as late as possible: when
// Wake was called, or when Reading ends. A Wake since the reader began or went on counts.
func (t *Term) Park(next func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next = next
	return errParked
}

// Wake has a parked reader go on; one that runs does not park the next time. Safe for concurrent use; it does not block.
func (t *Term) Wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch t.reader {
	case readerRuns:
		t.woken = true
	case readerParked:
		t.reader = readerRuns
		go t.run(t.next)
	case readerDone:
	}
}

// run reads until the reader has returned or is parked.
func (t *Term) run(read func() error) {
	const ended = "weir: the handler ended its goroutine"
	err := errors.New(ended)
	defer func() {
		if err != errParked {
			t.mu.Lock()
			t.reader = readerDone
			t.mu.Unlock()
			t.over(err)
		}
	}()
	for read != nil {
		err = errors.New(ended)
		err = read()
		read = t.park(err)
	}
}

// park parks a reader that returned with err, unless that is no wish to, or was overtaken by a reason to go on: then it returns what
// with.
func (t *Term) park(err error) (next func() error) {
	if err != errParked {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.woken || t.draining || t.ctx.Err() != nil {
		t.woken = false
		return t.next
	}
	t.reader = readerParked
	if t.drained != nil {
		t.drained(nil)
		t.reading, t.drained = nil, nil
	}
	return nil
}

// ended has the reader notice that Context or Reading is to end.
func (t *Term) ended() {
	t.mu.Lock()
	if t.drained != nil {
		t.drained(context.Cause(t.ctx))
	}
	t.mu.Unlock()
	t.Wake()
}
