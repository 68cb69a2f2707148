package queue

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
)

// A handler ends Run. The other handlers finish, and their records are acknowledged. The record of
// the call stays in the queue.
func TestAHandlerStopsTheConsumer(t *testing.T) {
	for _, cause := range []error{errors.New("the database is read-only"), nil} {
		synctest.Test(t, func(t *testing.T) {
			q := newFakeQueue()
			q.put(4, nil, nil)
			c := q.consumer(t, Options{})
			began := time.Now()
			err := c.Run(t.Context(), RecordFunc(func(_ context.Context, r Record) error {
				if r.ID == "r2" {
					return weir.Stop(cause)
				}
				time.Sleep(5 * time.Second)
				return nil
			}))
			if !errors.Is(err, cause) || len(q.left()) != 1 || q.left()[0] != "r2" || c.Counts().Acknowledged != 3 {
				t.Errorf("%v, left %v, %+v", err, q.left(), c.Counts())
			}
			if took := time.Since(began); took > 6*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// Records that are still waiting after StopTimeout, and those of handlers whose contexts have
// ended, have spent a receive. Records that failed before have not.
func TestAStopCountsTheReceivesThatItSpends(t *testing.T) {
	for _, c := range []struct {
		name            string
		blocked         func(ctx context.Context, r Record) error
		spent, released int
		err             error
	}{
		{"the handler heeds its context", func(ctx context.Context, _ Record) error { <-ctx.Done(); return ctx.Err() }, 3, 2, nil},
		{"the handler succeeds late", func(ctx context.Context, _ Record) error { <-ctx.Done(); return nil }, 2, 2, nil},
		{"the handler does not return", func(context.Context, Record) error { time.Sleep(time.Minute); return nil }, 3, 2, weir.ErrAbandoned},
		{"the record failed before", func(ctx context.Context, r Record) error {
			if r.Attempt == 1 {
				return errors.New("it fails")
			}
			<-ctx.Done()
			return ctx.Err()
		}, 0, 2, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := newFakeQueue()
			q.put(6, nil, nil)
			for _, r := range q.records { // they are too close to the dead letters to be released early
				r.count = 3
			}
			consumer := q.consumer(t, Options{Concurrency: 1, StopTimeout: time.Second, MinBackoff: 10 * time.Millisecond})
			var done atomic.Int32
			_, err := runFor(t, consumer, 5*time.Second, RecordFunc(func(ctx context.Context, r Record) error {
				if done.Load() < 3 {
					time.Sleep(100 * time.Millisecond)
					done.Add(1)
					return nil
				}
				return c.blocked(ctx, r)
			}))
			if n := consumer.Counts(); !errors.Is(err, c.err) || n.Spent != c.spent || n.Released != c.released {
				t.Errorf("%s: %v, %+v", c.name, err, n)
			}
			time.Sleep(time.Hour) // the abandoned handler ends
		})
	}
}
