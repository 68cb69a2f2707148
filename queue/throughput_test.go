package queue

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The handlers have records to handle although each call takes 10 ms, and calls stay full.
func TestThroughputAndCalls(t *testing.T) {
	for _, c := range []struct {
		handlers int
		handling time.Duration
		least    float64 // share of what the handlers can do
		calls    float64 // most per record, without extensions
	}{
		{1, time.Millisecond, 0.9, 0.25},
		{1, 20 * time.Millisecond, 0.9, 0.25},
		{1, time.Second, 0.9, 0.27}, // the first and the last calls are not full
		{10, time.Millisecond, 0.8, 0.25},
		{100, 40 * time.Millisecond, 0.8, 0.25},
		{10, time.Second, 0.9, 0.25},
		{10, 14 * time.Second, 0.9, 0.25},
		{10, 5 * time.Minute, 0.9, 2}, // no record is fetched ahead
	} {
		synctest.Test(t, func(t *testing.T) {
			q := newFakeQueue()
			q.delay = 10 * time.Millisecond
			possible := float64(c.handlers) / c.handling.Seconds()
			d := max(2*time.Second, 100*c.handling)
			q.put(int(possible*d.Seconds())+100, nil, nil)
			cons := q.consumer(t, Options{Concurrency: c.handlers, StopTimeout: time.Hour})
			// The times are the same in each run. One handler handles only 100 records, so other
			// times could miss the bounds by chance.
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(1, 0))
			if _, err := runFor(t, cons, d, RecordFunc(func(context.Context, Record) error {
				mu.Lock()
				took := c.handling/2 + time.Duration(random.Int64N(int64(c.handling)))
				mu.Unlock()
				time.Sleep(took)
				return nil
			})); err != nil {
				t.Error(err)
			}
			n := cons.Counts()
			share := float64(n.Handled) / (possible * d.Seconds())
			calls := float64(n.Receives-n.EmptyReceives+n.AckCalls) / float64(n.Handled)
			t.Logf("%d handlers of %v: %.0f of %.0f records a second, %.3f calls per record (%d receives, %d acknowledgements of %d records), %d extensions", c.handlers, c.handling, float64(n.Handled)/d.Seconds(), possible, calls, n.Receives, n.AckCalls, n.Handled, n.Extended)
			if share < c.least || calls > c.calls {
				t.Errorf("%d handlers of %v: %.2f of the throughput, %.3f calls per record", c.handlers, c.handling, share, calls)
			}
		})
	}
}
