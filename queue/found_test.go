package queue

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/deadletter"
)

// Answers that turn out larger than their reservations do not wait for each other.
func TestLargeAnswersDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.delay = 10 * time.Millisecond
		q.put(12, nil, make([]byte, largestRecord))
		c := q.consumer(t, Options{MaxBytes: 40 << 20, Concurrency: 20, API: admitting{q}})
		if _, err := runFor(t, c, 30*time.Second, RecordFunc(func(context.Context, Record) error { return nil })); err != nil {
			t.Error(err)
		}
		if n := c.Counts(); n.Handled != 12 || n.Received != 12 {
			t.Errorf("after 30 s: %+v", n)
		}
	})
}

// admitting asks for the memory of each answer, as a Client does.
type admitting struct{ *fakeQueue }

func (q admitting) Receive(ctx context.Context, in ReceiveInput) (ReceiveOutput, error) {
	out, err := q.fakeQueue.Receive(ctx, in)
	var size int64
	for _, r := range out.Records {
		size += int64(len(r.Data)) * 4 / 3
	}
	if err == nil && size > 0 {
		time.Sleep(10 * time.Millisecond) // other answers begin meanwhile
		err = in.Admit(ctx, size)
	}
	return out, err
}

// Records whose handlers take long together are handled alone before their receives are spent.
func TestSlowBatchesAreHandledAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(5, nil, nil)
		var mu sync.Mutex
		sizes := map[int]int{}
		c := q.consumer(t, Options{Hold: 30 * time.Second, MaxHold: time.Minute, Concurrency: 5})
		if _, err := runFor(t, c, time.Hour, BatchFunc(func(ctx context.Context, records []Record) error {
			mu.Lock()
			sizes[len(records)]++
			mu.Unlock()
			for range records {
				select {
				case <-time.After(30 * time.Second):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			return nil
		})); err != nil {
			t.Error(err)
		}
		if len(q.left()) != 0 || len(q.dead) != 0 || sizes[5] == 0 || sizes[1] == 0 {
			t.Errorf("left %v, dead %v, calls by size %v", q.left(), q.dead, sizes)
		}
	})
}

// The records that wait for their acknowledgements during an outage are bounded.
func TestWaitingAcknowledgementsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(800, nil, nil)
		began := time.Now()
		q.ackErr = func(string) (string, error) {
			if time.Since(began) < time.Minute {
				return "", errors.New("the service fails")
			}
			return "", nil
		}
		c := q.consumer(t, Options{Concurrency: 10})
		var most atomic.Int64
		if _, err := runFor(t, c, 5*time.Minute, RecordFunc(func(context.Context, Record) error {
			time.Sleep(10 * time.Millisecond)
			most.Store(max(most.Load(), int64(c.Counts().InFlight)))
			return nil
		})); err != nil {
			t.Error(err)
		}
		if most.Load() > 400 || len(q.left()) != 0 {
			t.Errorf("%d records in flight, %d are left", most.Load(), len(q.left()))
		}
	})
}

// A record that returns after its longest hold has the attempts of before.
func TestAttemptsOutliveAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.most = 0
		q.put(1, nil, nil)
		stored := 0
		c := q.consumer(t, Options{
			Hold: 30 * time.Second, MaxHold: 30 * time.Second, MinBackoff: 20 * time.Second,
			OnFailure: FailurePolicy{MaxAttempts: 5, Destination: deadletter.Func(func(context.Context, []deadletter.Letter) error { stored++; return nil })},
		})
		attempts := 0
		if _, err := runFor(t, c, time.Hour, RecordFunc(func(_ context.Context, r Record) error {
			attempts = r.Attempt
			return errors.New("it always fails")
		})); err != nil {
			t.Error(err)
		}
		if stored != 1 || attempts < 5 || attempts > 8 || len(q.left()) != 0 {
			t.Errorf("%d dead letters after %d attempts, left %v", stored, attempts, q.left())
		}
	})
}

// A record that was set aside stays so if its aggregate arrives again while another of its records
// is handled.
func TestASetAsideRecordOfAnAggregateIsNotHandledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		var b aggregate.Builder
		for _, text := range []string{"slow", "bad"} {
			if err := b.Add("k", "", []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		q.put(1, nil, b.Append(nil))
		c := q.consumer(t, Options{Hold: 10 * time.Second, MaxHold: 10 * time.Second})
		running, bad := 0, 0
		if _, err := runFor(t, c, time.Minute, RecordFunc(func(_ context.Context, r Record) error {
			if string(r.Data) == "bad" {
				bad++
				return weir.Reject(errors.New("bad"))
			}
			if running++; running > 1 {
				t.Error("a record is handled twice at the same time")
			}
			time.Sleep(25 * time.Second)
			running--
			return nil
		})); err != nil {
			t.Error(err)
		}
		if bad > 1 && c.Counts().Released == 0 {
			t.Errorf("the rejected record was handled %d times before its aggregate was released", bad)
		}
	})
}

// A record that was set aside without a destination is set aside again each time it returns, so
// that it becomes a dead letter of the queue although no other record is handled meanwhile.
func TestASetAsideRecordDoesNotWaitForOthersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(1, nil, []byte("bad"))
		c := q.consumer(t, Options{OnFailure: FailurePolicy{MaxAttempts: 3}})
		time.AfterFunc(10*time.Second, func() { q.put(1, nil, []byte("good")) })
		if _, err := runFor(t, c, time.Minute, RecordFunc(func(_ context.Context, r Record) error {
			if string(r.Data) == "bad" {
				return errors.New("bad")
			}
			return nil
		})); err != nil {
			t.Error(err)
		}
		if len(q.dead) != 1 || len(q.left()) != 0 {
			t.Errorf("dead %v, left %v, %+v", q.dead, q.left(), c.Counts())
		}
	})
}
