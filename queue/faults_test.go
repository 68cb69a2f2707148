package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/deadletter"
)

func succeed(context.Context, Record) error { return nil }

func apiError(code string, status int) error {
	return &Error{Operation: "X", Code: code, Status: status}
}

func TestALongHandlerKeepsItsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(25, nil, nil)
		c := q.consumer(t, Options{Concurrency: 25})
		fails := 0
		q.visErr = func(Visibility) (string, error) {
			if fails++; fails%5 == 0 {
				return "ThrottlingException", nil
			}
			if fails%23 == 0 {
				return "", errors.New("connection reset")
			}
			return "", nil
		}
		_, err := runFor(t, c, 30*time.Minute, RecordFunc(func(ctx context.Context, r Record) error {
			time.Sleep(20 * time.Minute)
			return context.Cause(ctx)
		}))
		n := c.Counts()
		if err != nil || len(q.left()) != 0 || n.Received != 25 || n.HoldsLost != 0 {
			t.Errorf("%v, left %v, %+v", err, q.left(), n)
		}
		// 20 minutes are 80 times half of a hold. Each call extends up to ten.
		if n.VisibilityCalls > 80*25/3 {
			t.Errorf("%d calls for extensions", n.VisibilityCalls)
		}
	})
}

func TestALostHoldEndsTheHandler(t *testing.T) {
	for _, c := range []struct {
		name    string
		visErr  func(Visibility) (string, error)
		most    time.Duration
		after   time.Duration // when the context ends
		succeed bool          // the handler ignores it
	}{
		{"the longest time is over", nil, time.Minute, 58 * time.Second, false},
		{"extensions fail", func(Visibility) (string, error) { return "", errors.New("down") }, time.Hour, 28 * time.Second, false},
		{"an extension is refused", func(Visibility) (string, error) { return "ResourceNotFoundException", nil }, time.Hour, 15 * time.Second, false},
		{"the handler succeeds all the same", func(Visibility) (string, error) { return "", errors.New("down") }, time.Hour, 28 * time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := newFakeQueue()
			q.put(1, nil, nil)
			q.visErr = c.visErr
			var lost []HoldLost
			var late []HandledLate
			cons := q.consumer(t, Options{MaxHold: c.most, Events: Events{
				HoldLost:    func(_ context.Context, e HoldLost) { lost = append(lost, e) },
				HandledLate: func(_ context.Context, e HandledLate) { late = append(late, e) },
			}})
			calls := 0
			_, err := runFor(t, cons, 10*time.Minute, RecordFunc(func(ctx context.Context, r Record) error {
				if calls++; calls > 1 {
					return nil
				}
				began := time.Now()
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), ErrHoldLost) || time.Since(began).Truncate(time.Second) != c.after {
					t.Errorf("%s: %v after %v", c.name, context.Cause(ctx), time.Since(began))
				}
				if c.succeed {
					return nil
				}
				return context.Cause(ctx)
			}))
			n := cons.Counts()
			if err != nil || len(q.left()) != 0 || len(lost) != 1 || lost[0].Phase != Handling || n.Spent != 1 || n.HoldsLost != 1 {
				t.Errorf("%s: %v, left %v, lost %+v, %+v", c.name, err, q.left(), lost, n)
			}
			switch {
			case c.succeed && (calls != 1 || len(late) != 1 || !late[0].Acknowledged):
				t.Errorf("%s: %d calls, late %+v", c.name, calls, late)
			case !c.succeed && (calls != 2 || n.Received != 2):
				t.Errorf("%s: %d calls, %+v", c.name, calls, n)
			}
		})
	}
}

// A record that returns while its handler still runs is not handled by a second one.
func TestARecordIsNotHandledTwiceAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(1, nil, nil)
		var repaired atomic.Bool
		q.visErr = func(Visibility) (string, error) {
			if !repaired.Load() {
				return "", errors.New("down")
			}
			return "", nil
		}
		c := q.consumer(t, Options{})
		calls := 0
		_, err := runFor(t, c, 10*time.Minute, RecordFunc(func(context.Context, Record) error {
			calls++
			time.Sleep(40 * time.Second) // beyond the hold
			repaired.Store(true)
			return nil
		}))
		if n := c.Counts(); err != nil || calls != 1 || n.Redelivered != 1 || n.Acknowledged != 1 || len(q.left()) != 0 {
			t.Errorf("%v, %d calls, %+v", err, calls, n)
		}
	})
}

func TestAcknowledgementsAreRepeatedByEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(50, nil, nil)
		tries := map[string]int{}
		q.ackErr = func(h string) (string, error) {
			switch tries[h]++; {
			case tries[h] == 1 && strings.HasSuffix(h, "3"):
				return "ThrottlingException", nil
			case tries[h] == 1 && h == "h20":
				return "", errors.New("reset")
			case h == "h30" && tries[h] == 1:
				return "ResourceNotFoundException", nil
			}
			return "", nil
		}
		c := q.consumer(t, Options{})
		var s seen
		_, err := runFor(t, c, 10*time.Minute, RecordFunc(func(_ context.Context, r Record) error { s.add(r); return nil }))
		n := c.Counts()
		if err != nil || len(q.left()) != 0 || n.NotAcknowledged < 1 || n.Acknowledged+n.NotAcknowledged != n.Received || n.Redelivered < 1 {
			t.Errorf("%v, left %v, %+v", err, q.left(), n)
		}
		// The records of refused acknowledgements return and are not handled again.
		for id, calls := range s.n {
			if calls != 1 {
				t.Errorf("%s was handled %d times", id, calls)
			}
		}
	})
}

func TestAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(40, nil, nil)
		for _, r := range q.records[5:10] {
			r.count = 3 // more than half of the receives are spent
		}
		c := q.consumer(t, Options{Concurrency: 2})
		var s seen
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Minute, cancel)
		began := time.Now()
		err := c.Run(ctx, RecordFunc(func(_ context.Context, r Record) error {
			s.add(r)
			if c.Counts().Handled > 1 {
				cancel() // with records waiting
			}
			time.Sleep(time.Second)
			return nil
		}))
		took := time.Since(began)
		for i, r := range q.records {
			if !r.gone && (r.count > 1 && i >= 5 && i < 10) {
				t.Errorf("%s was released, but its receives are scarce", r.id)
			}
			if !r.gone && r.hidden.After(time.Now()) {
				t.Errorf("%s is still hidden", r.id)
			}
		}
		if n := c.Counts(); err != nil || n.Released == 0 || n.Spent != n.Released || took > 20*time.Second || n.Acknowledged != len(s.n) {
			t.Errorf("%v after %v, %+v", err, took, n)
		}
	})
}

func TestAStopHasALimit(t *testing.T) {
	for _, ignores := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			q := newFakeQueue()
			q.put(1, nil, nil)
			c := q.consumer(t, Options{StopTimeout: 5 * time.Second})
			end := make(chan struct{})
			took, err := runFor(t, c, time.Minute, RecordFunc(func(ctx context.Context, _ Record) error {
				if ignores {
					<-end
					return nil
				}
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), weir.ErrStopping) {
					t.Errorf("%v", context.Cause(ctx))
				}
				return ctx.Err()
			}))
			want := 5 * time.Second
			if ignores {
				want += abandonAfter
			}
			if errors.Is(err, weir.ErrAbandoned) != ignores || took != want {
				t.Errorf("%v after %v", err, took)
			}
			close(end)
		})
	}
}

func TestWhatIsNotAcknowledgedAtAStopIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(1, nil, nil)
		q.ackErr = func(string) (string, error) { return "", errors.New("down") }
		c := q.consumer(t, Options{StopTimeout: 5 * time.Second})
		if took, err := runFor(t, c, 10*time.Second, RecordFunc(succeed)); !errors.Is(err, ErrNotAcknowledged) || took != 7*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

func TestErrorsOfReceives(t *testing.T) {
	for _, c := range []struct {
		name    string
		err     error
		from    int // the first failing call
		status  string
		want    string // of the error of Run
		handled int
	}{
		{"throttling", apiError("ThrottlingException", 400), 1, Active, "", 2},
		{"denied at first", apiError("AccessDeniedException", 400), 1, Active, "AccessDenied", 0},
		{"denied later", apiError("AccessDeniedException", 400), 2, Active, "", 2},
		{"invalid at first", apiError("ValidationException", 400), 1, Active, "Validation", 0},
		{"missing for a while", apiError("ResourceNotFoundException", 400), 1, Active, "", 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := newFakeQueue()
			q.put(1, nil, nil)
			calls := 0
			q.receiveErr = func() error {
				if calls++; calls >= c.from && calls < c.from+5 {
					return c.err
				}
				return nil
			}
			var s seen
			cons := q.consumer(t, Options{})
			time.AfterFunc(5*time.Minute, func() { q.put(1, nil, nil) })
			_, err := runFor(t, cons, 10*time.Minute, RecordFunc(func(_ context.Context, r Record) error { s.add(r); return nil }))
			if len(s.n) != c.handled || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, %d handled", c.name, err, len(s.n))
			}
		})
	}
}

func TestADeletedQueueEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.receiveErr = func() error {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.status = Deleting
			return apiError("ResourceNotFoundException", 400)
		}
		if _, err := runFor(t, q.consumer(t, Options{}), time.Minute, RecordFunc(succeed)); !errors.Is(err, ErrQueueNotFound) {
			t.Error(err)
		}
		if _, err := runFor(t, q.consumer(t, Options{}), time.Minute, RecordFunc(succeed)); !errors.Is(err, ErrQueueNotFound) {
			t.Errorf("from the start: %v", err)
		}
	})
}

func TestLostAnswersLoseNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(100, nil, nil)
		n := 0
		q.lost = func() bool { n++; return n%4 == 0 }
		c := q.consumer(t, Options{})
		if _, err := runFor(t, c, 10*time.Minute, RecordFunc(succeed)); err != nil || len(q.left()) != 0 || len(q.dead) != 0 {
			t.Errorf("%v, left %v, dead %v", err, q.left(), q.dead)
		}
	})
}

// letters is a destination that fails a number of times.
type letters struct {
	mu    sync.Mutex // guards the fields below
	fails int
	all   []deadletter.Letter
}

func (l *letters) Put(_ context.Context, all []deadletter.Letter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails--; l.fails >= 0 {
		if l.fails == 0 {
			panic("boom")
		}
		return errors.New("full")
	}
	l.all = append(l.all, all...)
	return nil
}

func TestPoisonRecordsBecomeDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(20, nil, []byte("data"))
		to := &letters{fails: 2}
		c := q.consumer(t, Options{App: "billing", OnFailure: FailurePolicy{Destination: to, MaxAttempts: 3}})
		time.AfterFunc(5*time.Second, func() { q.put(20, nil, nil) }) // others that succeed
		var s seen
		_, err := runFor(t, c, 30*time.Minute, RecordFunc(func(_ context.Context, r Record) error {
			s.add(r)
			switch r.ID {
			case "r3":
				return weir.Reject(errors.New("not JSON"))
			case "r7":
				return errors.New("always")
			}
			return nil
		}))
		if err != nil || len(q.left()) != 0 || len(to.all) != 2 || c.Counts().SetAside != 2 || len(q.dead) != 0 {
			t.Fatalf("%v, left %v, %d letters, %+v", err, q.left(), len(to.all), c.Counts())
		}
		for _, l := range to.all {
			reason, id := deadletter.Rejected, "r3"
			if l.Position == "r7" {
				reason, id = deadletter.Attempts, "r7"
			}
			if l.Position != id || l.Reason != reason || l.App != "billing" || l.ID != "billing/"+testARN+"/queue/"+id || string(l.Data) != "data" || l.Error == "" {
				t.Errorf("%+v", l)
			}
		}
	})
}

func TestPoisonRecordsAreLeftToTheQueue(t *testing.T) {
	for _, most := range []int{6, 0} {
		synctest.Test(t, func(t *testing.T) {
			q := newFakeQueue()
			q.most = most
			q.put(3, nil, nil)
			c := q.consumer(t, Options{})
			var s seen
			_, err := runFor(t, c, time.Hour, RecordFunc(func(_ context.Context, r Record) error {
				if s.add(r); r.ID == "r1" {
					return weir.Reject(errors.New("bad"))
				}
				return nil
			}))
			switch {
			case err != nil:
				t.Error(err)
			case most > 0 && (s.n["r1"] != 6 || fmt.Sprint(q.dead) != "[r1]"):
				t.Errorf("%d calls, dead %v", s.n["r1"], q.dead)
			case most == 0 && (s.n["r1"] < 8 || s.n["r1"] > 14):
				t.Errorf("%d calls without dead letters", s.n["r1"])
			}
		})
	}
}

func TestAnAggregateIsAcknowledgedWhenAllIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b aggregate.Builder
		for i := range 5 {
			if err := b.Add(fmt.Sprint("k", i), "", fmt.Appendf(nil, "d%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		data := b.Append(nil)
		q := newFakeQueue()
		q.put(1, func(int) string { return "container" }, data)
		q.visErr = func(Visibility) (string, error) { return "", errors.New("down") } // the hold is lost
		c := q.consumer(t, Options{})
		var s seen
		_, err := runFor(t, c, 10*time.Minute, RecordFunc(func(ctx context.Context, r Record) error {
			n := s.add(r)
			if want := fmt.Sprint("d", r.Sub-1); string(r.Data) != want || r.PartitionKey != fmt.Sprint("k", r.Sub-1) || r.ID != "r0" {
				t.Errorf("%+v", r)
			}
			if r.Sub == 3 && n == 1 {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		}))
		if err != nil || len(q.left()) != 0 || len(s.n) != 5 || q.records[0].count != 2 {
			t.Errorf("%v, left %v, %v", err, q.left(), s.n)
		}
		for key, n := range s.n {
			if want := map[bool]int{true: 2, false: 1}[key == "r0+3"]; n != want {
				t.Errorf("%s was handled %d times", key, n)
			}
		}

		q = newFakeQueue()
		q.put(1, nil, data)
		calls := 0
		_, _ = runFor(t, q.consumer(t, Options{KeepPacked: true}), time.Minute, RecordFunc(func(_ context.Context, r Record) error {
			if calls++; len(r.Data) != len(data) || r.Sub != 0 {
				t.Errorf("%+v", r)
			}
			return nil
		}))
		if calls != 1 {
			t.Errorf("%d calls for a packed record", calls)
		}
	})
}

func TestWhenTheQueueIsWarnedAbout(t *testing.T) {
	for most, want := range map[int]string{6: "MaxReceiveCount is low", 10: "", 0: "keeps no dead letters"} {
		synctest.Test(t, func(t *testing.T) {
			q := newFakeQueue()
			q.most = most
			var log strings.Builder
			c := q.consumer(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if _, err := runFor(t, c, time.Second, RecordFunc(succeed)); err != nil || want == "" && log.Len() > 0 || !strings.Contains(log.String(), want) {
				t.Errorf("%d: %q", most, log.String())
			}
		})
	}
}

// Answers with the largest records stay within the memory budget.
func TestMemoryIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(60, nil, make([]byte, largestRecord))
		c := q.consumer(t, Options{Concurrency: 100})
		var most atomic.Int64
		_, err := runFor(t, c, 10*time.Minute, RecordFunc(func(_ context.Context, r Record) error {
			time.Sleep(time.Second)
			most.Store(max(most.Load(), c.Counts().Bytes))
			return nil
		}))
		if err != nil || len(q.left()) != 0 || most.Load() > defaultBytes || most.Load() < 5*largestRecord {
			t.Errorf("%v, left %d, %d MiB", err, len(q.left()), most.Load()>>20)
		}
	})
}

func TestNewAllowsOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		c := q.consumer(t, Options{})
		time.AfterFunc(time.Second, func() {
			if err := c.Run(t.Context(), RecordFunc(succeed)); err == nil || !strings.Contains(err.Error(), "already running") {
				t.Error(err)
			}
		})
		for range 2 {
			if _, err := runFor(t, c, time.Minute, RecordFunc(succeed)); err != nil {
				t.Error(err)
			}
		}
		if err := c.Run(t.Context(), nil); err == nil {
			t.Error("no handler is no error")
		}
		if _, err := New(aws.Config{}, Options{Queue: "q"}); err == nil {
			t.Error("no configuration is no error")
		}
	})
}
