// Package retry computes the pauses between attempts. They double, half of each is random, and a
// context ends them.
package retry

import (
	"context"
	"time"

	"github.com/weir-go/weir/internal/jitter"
)

// Pause returns how long to wait after a number of consecutive failures: low after the first, twice
// as long after each further one, at most high. Up to half of the pause is random.
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

// Wait returns nil after d, or earlier the cause of ctx's end.
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
