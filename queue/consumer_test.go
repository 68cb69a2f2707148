package queue

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-go/weir"
)

func TestEachRecordIsHandledAndAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(1000, nil, []byte("data"))
		c := q.consumer(t, Options{})
		var s seen
		stopped, err := runFor(t, c, time.Minute, RecordFunc(func(_ context.Context, r Record) error {
			if s.add(r); string(r.Data) != "data" || r.Attempt != 1 || r.ReceiveCount != 1 {
				t.Errorf("%+v", r)
			}
			time.Sleep(10 * time.Millisecond)
			return nil
		}))
		n := c.Counts()
		if err != nil || len(s.n) != 1000 || len(q.left()) != 0 || n.Acknowledged != 1000 || n.Handled != 1000 || n.InFlight != 0 {
			t.Errorf("%v, %d handled, %d left, %+v", err, len(s.n), len(q.left()), n)
		}
		if stopped > time.Second {
			t.Errorf("the stop of an idle consumer took %v", stopped)
		}
		calls := n.Receives - n.EmptyReceives + n.AckCalls
		if perRecord := float64(calls) / 1000; perRecord > 0.25 {
			t.Errorf("%v calls per record", perRecord)
		}
		t.Logf("%d calls for 1000 records, %d of them receives", calls, n.Receives)
	})
}

func TestAnIdleConsumerMakesThreeCallsAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		c := q.consumer(t, Options{Concurrency: 100})
		if _, err := runFor(t, c, 10*time.Minute, RecordFunc(func(context.Context, Record) error { return nil })); err != nil {
			t.Error(err)
		}
		if n := c.Counts(); n.Receives < 29 || n.Receives > 32 || q.parallel != 1 {
			t.Errorf("%+v, %d in parallel", n, q.parallel)
		}
	})
}

func TestAFailedRecordIsHandledAgainWithinItsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(1, nil, nil)
		c := q.consumer(t, Options{})
		var attempts []int
		_, err := runFor(t, c, 10*time.Minute, RecordFunc(func(_ context.Context, r Record) error {
			if attempts = append(attempts, r.Attempt); r.Attempt < 8 {
				return errors.New("not yet")
			}
			return nil
		}))
		if n := c.Counts(); err != nil || len(attempts) != 8 || q.records[0].count != 1 || n.Acknowledged != 1 || n.Extended == 0 || n.Failed != 7 {
			t.Errorf("%v, attempts %v, received %d times, %+v", err, attempts, q.records[0].count, n)
		}
	})
}

func TestPanicsAndGoexitAreFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(2, nil, nil)
		var failed []error
		c := q.consumer(t, Options{Events: Events{Handled: func(_ context.Context, e Handled) {
			if e.Err != nil {
				failed = append(failed, e.Err)
			}
		}}})
		_, err := runFor(t, c, time.Minute, RecordFunc(func(_ context.Context, r Record) error {
			switch {
			case r.Attempt == 2:
			case r.ID == "r0":
				panic("boom")
			default:
				runtime.Goexit()
			}
			return nil
		}))
		panics := 0
		for _, err := range failed {
			if errors.As(err, new(*weir.PanicError)) {
				panics++
			}
		}
		if err != nil || len(failed) != 2 || panics != 1 || len(q.left()) != 0 {
			t.Errorf("%v, %v, left %v", err, failed, q.left())
		}
	})
}

func TestConcurrencyIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(500, nil, nil)
		c := q.consumer(t, Options{Concurrency: 7})
		var now, most, inFlight atomic.Int64
		_, err := runFor(t, c, time.Minute, RecordFunc(func(context.Context, Record) error {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(100 * time.Millisecond)
			now.Add(-1)
			inFlight.Store(max(inFlight.Load(), int64(c.Counts().InFlight)))
			return nil
		}))
		if err != nil || most.Load() != 7 || len(q.left()) != 0 || inFlight.Load() > 7+12+17 /* in handlers, ahead, to acknowledge */ {
			t.Errorf("%v, %d handlers, %d in flight, %d left", err, most.Load(), inFlight.Load(), len(q.left()))
		}
	})
}

func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(100, nil, nil)
		c := q.consumer(t, Options{BatchSize: 5, Concurrency: 20})
		var s seen
		var largest atomic.Int64
		_, err := runFor(t, c, time.Minute, BatchFunc(func(_ context.Context, all []Record) error {
			largest.Store(max(largest.Load(), int64(len(all))))
			time.Sleep(time.Second)
			var err error
			for _, r := range all {
				n := s.add(r)
				switch {
				case r.ID == "r3" && n == 1:
					err = errors.Join(err, Failed(r, errors.New("named")))
				case r.ID == "r50" && n < 3:
					return errors.New("one of them")
				}
			}
			return err
		}))
		if err != nil || len(q.left()) != 0 || largest.Load() != 5 {
			t.Errorf("%v, left %v, batches of %d", err, q.left(), largest.Load())
		}
		for id, n := range s.n {
			if want := map[string]int{"r3": 2, "r50": 3}[id]; want > 0 && n != want || want == 0 && n > 2 {
				t.Errorf("%s was handled %d times", id, n)
			}
		}
	})
}

func TestRecordsOfAKeyAreHandledInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(9, func(i int) string { return string(rune('a' + i%3)) }, nil)
		c := q.consumer(t, Options{OrderByKey: true, Concurrency: 50})
		last, busy := map[string]int{}, map[string]bool{}
		var s seen
		_, err := runFor(t, c, 5*time.Minute, RecordFunc(func(_ context.Context, r Record) error {
			s.mu.Lock()
			if busy[r.PartitionKey] {
				t.Errorf("two records of %s at the same time", r.PartitionKey)
			}
			busy[r.PartitionKey] = true
			s.mu.Unlock()
			time.Sleep(50 * time.Millisecond)
			n := s.add(r)
			s.mu.Lock()
			defer s.mu.Unlock()
			busy[r.PartitionKey] = false
			if r.ID == "r3" && n < 3 {
				return errors.New("not yet")
			}
			i := 0
			for _, digit := range r.ID[1:] {
				i = i*10 + int(digit-'0')
			}
			if i < last[r.PartitionKey] {
				t.Errorf("r%d after r%d", i, last[r.PartitionKey])
			}
			last[r.PartitionKey] = i
			return nil
		}))
		if err != nil || len(q.left()) != 0 {
			t.Errorf("%v, left %v", err, q.left())
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	_, err := New(aws.Config{Region: "eu-west-1", Credentials: keys()}, Options{
		Concurrency: -1, Wait: 1500 * time.Millisecond, Hold: 13 * time.Hour, MaxHold: time.Second, MaxBytes: 1, OnFailure: FailurePolicy{MaxAttempts: -1, MaxAge: 1},
	})
	for _, want := range []string{"Options.Queue is required", "Options.Concurrency is -1, it must be 1 to 10000", "Options.Wait is 1.5s", "Options.Hold is 13h", "MaxHold", "MaxBytes", "MaxAttempts", "MaxAge"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if _, err := New(aws.Config{Region: "us-east-1", Credentials: keys()}, Options{Queue: testARN}); err == nil || !strings.Contains(err.Error(), "in region eu-west-1") {
		t.Errorf("an ARN of another region: %v", err)
	}
}
