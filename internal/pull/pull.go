// Package pull hands batches to a user's function that asks for them, and records the function's
// progress. The function runs in its own goroutine; the shard's goroutine waits for it.
package pull

import (
	"context"
	"errors"
	"fmt"
)

// ErrNext is returned by [Puller.Hand] when the function asks for the next batch. The function
// marks the records of the previous batch as done itself, possibly later.
var ErrNext = errors.New("weir: the next batch is requested")

// EndedError is returned when the function has returned although the term continues.
type EndedError struct{ Err error }

func (e *EndedError) Error() string {
	if e.Err == nil {
		return "weir: PullHandler.Pull returned before the end of the shard"
	}
	return fmt.Sprintf("weir: PullHandler.Pull failed: %v", e.Err)
}

func (e *EndedError) Unwrap() error { return e.Err }

// Puller passes batches of type B from the shard's goroutine to the function's. The function's
// goroutine ends before [Puller.End] returns.
type Puller[B any] struct {
	*Progress
	batches chan B
	asks    chan struct{} // the function has come back for the next batch
	ended   chan struct{} // closed when the term ends and why is set
	why     error

	// Only the function's goroutine uses these.
	out  bool // it has a batch
	last bool // this batch is the last one
}

// Start calls f in a new goroutine. f must not panic. If f ends its goroutine with runtime.Goexit,
// exit counts as the error of f. wake is called when f has returned.
func Start[B any](f func(p *Puller[B]) error, exit error, wake func()) *Puller[B] {
	p := &Puller[B]{
		Progress: &Progress{done: make(chan struct{})},
		batches:  make(chan B), asks: make(chan struct{}), ended: make(chan struct{}),
	}
	go func() {
		p.err = exit
		defer func() {
			close(p.done)
			wake()
		}()
		p.err = f(p)
	}()
	return p
}

// Next waits for the next batch. It returns false after the last batch, and false with the reason
// when the term ends. isLast reports whether a batch is the last one. The function's goroutine
// calls Next.
func (p *Puller[B]) Next(isLast func(B) bool) (b B, some bool, err error) {
	if p.last {
		return b, false, nil
	}
	if p.out {
		p.out = false
		select {
		case p.asks <- struct{}{}:
		case <-p.ended:
		}
	}
	select {
	case b = <-p.batches:
		p.out, p.last = true, isLast(b)
		return b, true, nil
	case <-p.ended:
		return b, false, p.why
	}
}

// Hand passes a batch to the function. It returns [ErrNext] when the function asks for the next
// batch. When the function has returned, Hand returns an [EndedError]. end is set if the shard ends
// with the batch. If the function then returns nil, Hand returns nil. The shard's goroutine calls
// Hand.
func (p *Puller[B]) Hand(ctx context.Context, b B, end bool) error {
	select {
	case p.batches <- b:
	case <-p.done:
		return &EndedError{p.err}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-p.asks:
		return ErrNext
	case <-p.done:
		if end && p.err == nil {
			return nil
		}
		return &EndedError{p.err}
	case <-ctx.Done():
		select { // the function keeps the batch until it comes back
		case <-p.asks:
		case <-p.done:
		}
		return context.Cause(ctx)
	}
}

// End ends the iteration with the reason why, and waits until the function has returned. It must be
// called once.
func (p *Puller[B]) End(why error) {
	p.why = why
	close(p.ended)
	<-p.done
}
