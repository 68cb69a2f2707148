// Package retry computes the pauses between attempts. Pauses double, and up to half of each is
// random. A context can end them.
package retry

import (
	"context"
	"time"

	"github.com/weir-go/weir/internal/jitter"
)

// Pause returns how long to wait after a number of consecutive failures, which is at least 1. The
// longest pause is low after the first failure. It doubles with each further failure, and never
// exceeds high. A pause is a random duration from half of the longest pause to all of it.
func Pause(low, high time.Duration, failures int) time.Duration {
	d := high
	if doubled := low << (failures - 1); failures < 40 && doubled > 0 {
		d = min(doubled, high)
	}
	return d/2 + jitter.N(d/2+1)
}

// Backoff counts consecutive failures. It is not safe for concurrent use.
type Backoff struct {
	Low, High time.Duration
	Failures  int
}

// Next counts a failure and returns how long to wait after it.
func (b *Backoff) Next() time.Duration {
	b.Failures++
	return Pause(b.Low, b.High, b.Failures)
}

// Reset records a success.
func (b *Backoff) Reset() { b.Failures = 0 }

// Wait waits for d and returns nil. If ctx ends earlier, it returns the cause of ctx.
func Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
