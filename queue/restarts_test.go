package queue

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A run that is stopped again and again makes no dead letter of a healthy record.
func TestRestartsMakeNoDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(400, nil, nil)
		handler := RecordFunc(func(context.Context, Record) error { time.Sleep(300 * time.Millisecond); return nil })
		var running sync.WaitGroup
		for i := range 10 {
			running.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				for range 10 {
					if _, err := runFor(t, q.consumer(t, Options{Concurrency: 2}), time.Second, handler); err != nil {
						t.Error(err)
					}
				}
			})
		}
		running.Wait()
		if _, err := runFor(t, q.consumer(t, Options{}), time.Minute, handler); err != nil {
			t.Error(err)
		}
		if len(q.left()) != 0 || len(q.dead) != 0 {
			t.Errorf("left %v, dead %v", q.left(), q.dead)
		}
	})
}
