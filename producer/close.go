package producer

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// grace is how long Close waits after its context has ended, and for the last events.
const grace = 5 * time.Second

// RemainingError is returned by [Producer.Close] when its context ended before each record had its
// outcome.
type RemainingError struct {
	Records, Bytes int // not stored, as far as the producer knows
	MaybeStored    int // of these, records that may be in the stream
}

// Error returns the number of records that are left.
func (e *RemainingError) Error() string {
	return fmt.Sprintf("producer: closed with %d records (%d bytes) left; %d of these may be in the stream", e.Records, e.Bytes, e.MaybeStored)
}

// Unwrap returns [ErrClosed].
func (e *RemainingError) Unwrap() error { return ErrClosed }

// add counts a record that failed because the producer was closed.
func (e *RemainingError) add(rec *Pending) {
	e.Records++
	e.Bytes += rec.size()
	if rec.repeated {
		e.MaybeStored++
	}
}

// ErrAbandoned is returned by [Producer.Close] when a call of the client or a callback did not
// return within 5 s after the context ended, or an event function or the logger within 5 s after
// them.
var ErrAbandoned = errors.New("producer: a call of the client or a callback has not returned")

// Close sends the remaining records without lingering and ends the producer. From then on Put
// returns [ErrClosed], also in calls that already wait. Close returns nil when each record has its
// outcome, its callback has returned, and all goroutines have ended.
//
// If ctx ends first, the remaining records fail with [ErrClosed], and Close returns a
// [*RemainingError], or [ErrAbandoned]. Close may be called several times.
func (p *Producer) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closing = true
	p.buffer.close()
	if !p.begun {
		p.mu.Unlock()
		p.cancel(ErrClosed)
		return nil
	}
	p.core.draining = true
	p.mu.Unlock()
	p.signal()
	select {
	case <-p.callbacks.over:
	case <-ctx.Done():
		p.abort()
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case <-p.callbacks.over:
		case <-late.C:
			p.queue.Close(0)
			return ErrAbandoned
		}
	}
	p.queue.Flush()
	if !p.queue.Close(grace) {
		return ErrAbandoned
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.remaining.Records > 0 {
		left := p.remaining
		return &left
	}
	return nil
}

// abort cancels the calls in flight. Records that are not stored fail.
func (p *Producer) abort() {
	p.mu.Lock()
	p.aborted = true
	p.mu.Unlock()
	p.cancel(ErrClosed)
	p.signal()
}
