package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/deadletter"
)

// matcher matches payloads that begin with yes. Payloads that begin with text are not JSON. It
// panics at others, until panics is 0.
type matcher struct{ panics int }

func (m *matcher) Match(data []byte, _ string, arrival time.Time) (matches, isJSON bool) {
	switch text := string(data); {
	case arrival.IsZero():
		panic("no arrival")
	case strings.HasPrefix(text, "text"):
		return false, false
	case strings.HasPrefix(text, "panic") && m.panics > 0:
		m.panics--
		panic("oops")
	case strings.HasPrefix(text, "panic"):
		return text == "panic", true
	default:
		return strings.HasPrefix(text, "yes"), true
	}
}

func TestFilteredRecordsAreAcknowledged(t *testing.T) {
	for _, c := range []struct {
		notJSON weir.NotJSON
		handled string // payloads
		n       Counts
		letters int
	}{
		{weir.PassNotJSON, "[yes 1 yes 2 yes 3 text]", Counts{Filtered: 3, NotJSON: 1, Handled: 4, Acknowledged: 5}, 0},
		{weir.DropNotJSON, "[yes 1 yes 2 yes 3]", Counts{Filtered: 4, NotJSON: 1, Handled: 3, Acknowledged: 5}, 0},
		{weir.FailNotJSON, "[yes 1 yes 2 yes 3]", Counts{Filtered: 3, NotJSON: 1, Handled: 3, Acknowledged: 5, Failed: 1, SetAside: 1}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := newFakeQueue()
			q.put(1, nil, []byte("yes 1"))
			q.put(1, nil, []byte("no"))
			var b, none aggregate.Builder
			for i, text := range []string{"yes 2", "no 2", "yes 3"} {
				if err := b.Add(fmt.Sprint(i), "", []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			if err := none.Add("k", "", []byte("no 3")); err != nil {
				t.Fatal(err)
			}
			q.put(1, nil, b.Append(nil))
			q.put(1, nil, none.Append(nil))
			q.put(1, nil, []byte("text"))
			var letters []deadletter.Letter
			var events Filtered
			o := Options{Filter: weir.Filter{By: &matcher{}, NotJSON: c.notJSON}, Concurrency: 1}
			o.OnFailure.Destination = deadletter.Func(func(_ context.Context, l []deadletter.Letter) error {
				letters = append(letters, l...)
				return nil
			})
			o.Events.Filtered = func(_ context.Context, f Filtered) {
				events.Dropped, events.NotJSON = events.Dropped+f.Dropped, events.NotJSON+f.NotJSON
			}
			consumer := q.consumer(t, o)
			var got []string
			_, err := runFor(t, consumer, time.Minute, RecordFunc(func(_ context.Context, r Record) error {
				got = append(got, string(r.Data))
				return nil
			}))
			n := consumer.Counts()
			n = Counts{Filtered: n.Filtered, NotJSON: n.NotJSON, Handled: n.Handled, Acknowledged: n.Acknowledged, Failed: n.Failed, SetAside: n.SetAside}
			if err != nil || fmt.Sprint(got) != c.handled || n != c.n || len(letters) != c.letters || len(q.left()) != 0 {
				t.Errorf("%d: %v, %v, %+v, %d letters, left %v", c.notJSON, err, got, n, len(letters), q.left())
			}
			if len(letters) > 0 && (letters[0].Reason != deadletter.Rejected || !strings.Contains(letters[0].Error, "not JSON")) {
				t.Errorf("%+v", letters[0])
			}
			if events.Dropped != n.Filtered || events.NotJSON != n.NotJSON {
				t.Errorf("%+v", events)
			}
		})
	}
}

// A filter that panics is a failure at its record, and the handler does not get the record.
func TestAFilterThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(1, nil, []byte("panic"))
		q.put(3, nil, []byte("yes"))
		var errs []error
		o := Options{Filter: weir.Filter{By: &matcher{panics: 3}}}
		o.Events.Handled = func(_ context.Context, h Handled) {
			if h.Err != nil {
				errs = append(errs, h.Err)
			}
		}
		c := q.consumer(t, o)
		calls := 0
		_, err := runFor(t, c, time.Minute, BatchFunc(func(_ context.Context, records []Record) error {
			calls += len(records)
			return nil
		}))
		var p *weir.PanicError
		if err != nil || calls != 4 || len(q.left()) != 0 || len(errs) != 2 || !errors.As(errs[0], &p) || p.Who != "Options.Filter" {
			t.Errorf("%v, %d calls, left %v, %v", err, calls, q.left(), errs)
		}
	})
}

// A record that the filter drops after it has panicked counts as filtered, not as handled.
func TestARecordThatIsDroppedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.put(1, nil, []byte("panic, then no"))
		q.put(1, nil, []byte("text"))
		m := &matcher{panics: 2}
		o := Options{Filter: weir.Filter{By: m, NotJSON: weir.DropNotJSON}, Concurrency: 1}
		var events Filtered
		o.Events.Filtered = func(_ context.Context, f Filtered) {
			events.Dropped, events.NotJSON = events.Dropped+f.Dropped, events.NotJSON+f.NotJSON
		}
		c := q.consumer(t, o)
		_, err := runFor(t, c, time.Minute, RecordFunc(func(context.Context, Record) error {
			t.Error("the handler gets a record")
			return nil
		}))
		n := c.Counts()
		if err != nil || n.Handled != 0 || n.Filtered != 2 || n.NotJSON != 1 || n.Failed != 1 || n.Acknowledged != 2 || len(q.left()) != 0 {
			t.Errorf("%v, left %v, %+v", err, q.left(), n)
		}
		if events.Dropped != 2 || events.NotJSON != 1 {
			t.Errorf("%+v", events)
		}
	})
}

// A record that the filter refuses never shares a call with records that it passes, also after it
// has failed.
func TestARefusedRecordIsAlone(t *testing.T) {
	r := &run{batch: 10}
	verdicts := []verdict{pass, pass, refuse, pass, pass}
	for i := range 5 {
		r.waiting = append(r.waiting, &task{of: &delivery{}, state: taskWaiting, verdict: verdicts[i], history: history{attempts: i}})
	}
	var sizes []int
	for len(r.waiting) > 0 {
		tasks := r.take()
		if sizes = append(sizes, len(tasks)); tasks[0].verdict != pass && len(tasks) != 1 {
			t.Errorf("a refused record has a call with %d records", len(tasks))
		}
	}
	if fmt.Sprint(sizes) != "[2 1 2]" {
		t.Errorf("%v", sizes)
	}
}

func TestFiltersThatMakeNoSense(t *testing.T) {
	for text, f := range map[string]weir.Filter{
		"Filter.By":      {NotJSON: weir.DropNotJSON},
		"Filter.NotJSON": {By: &matcher{}, NotJSON: 9},
	} {
		if _, err := New(aws.Config{}, Options{Queue: "orders", API: newFakeQueue(), Filter: f}); err == nil || !strings.Contains(err.Error(), "queue.Options."+text) {
			t.Errorf("%+v: %v", f, err)
		}
	}
}
