package emit

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/notify"
	"github.com/weir-go/weir/internal/proof/leaktest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

// Two events of the same state have the same key. Events that change no state have no key.
func TestStatesOfEvents(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b event.Event
		same bool
	}{
		{"a shard", event.LeaseTaken{Stream: "s", Shard: "1", Epoch: 1}, event.LeaseTaken{Stream: "s", Shard: "1", Epoch: 2}, true},
		{"two shards", event.LeaseTaken{Stream: "s", Shard: "1"}, event.LeaseTaken{Stream: "s", Shard: "2"}, false},
		{"two streams", event.Stalled{Stream: "s", Shard: "1"}, event.Stalled{Stream: "t", Shard: "1"}, false},
		{"two types", event.LeaseTaken{Stream: "s", Shard: "1"}, event.LeaseEnded{Stream: "s", Shard: "1"}, false},
		{"the leader", event.Leading{Leads: true}, event.Leading{Epoch: 7}, true},
		{"an operation", event.StoreFailed{Op: event.OpView}, event.StoreFailed{Op: event.OpView, Err: context.Canceled}, true},
		{"two operations", event.StoreFailed{Op: event.OpView}, event.StoreFailed{Op: event.OpLead}, false},
		{"fan-out", event.FanOutChanged{Shard: "1", Active: true}, event.FanOutChanged{Shard: "1"}, true},
		{"positions", event.PositionExpired{Shard: "1"}, event.PositionExpired{Shard: "1", Err: context.Canceled}, true},
		{"deaths", event.Suspected{Shard: "1", Died: 1}, event.Suspected{Shard: "1", Died: 2}, true},
	} {
		a, isA := stateOf(c.a)
		b, isB := stateOf(c.b)
		if !isA || !isB || (a == b) != c.same {
			t.Errorf("%s: the states are %v (%v) and %v (%v)", c.name, a, isA, b, isB)
		}
	}
	for _, e := range []event.Event{
		event.Read{}, event.BatchBegins{}, event.BatchHandled{}, event.CheckpointSaved{}, event.Unpacked{},
		event.Filtered{}, event.HandlerFailed{}, event.DeadLettered{}, event.DeadLetterDelayed{},
		event.DeadLetterFailed{}, event.ReadFailed{},
	} {
		if key, ok := stateOf(e); ok {
			t.Errorf("%T has the state %v", e, key)
		}
	}
}

// If the queue is full, details are dropped, and each drop is reported. A change of state replaces
// the waiting change of the same state.
func TestEventsThatDoNotArrive(t *testing.T) {
	queue := notify.New(2)
	var got []string
	drops := 0
	all := New(t.Context(), func(_ context.Context, e event.Event) {
		switch e := e.(type) {
		case event.LeaseTaken:
			got = append(got, fmt.Sprint("taken ", e.Epoch))
		case event.Read:
			got = append(got, fmt.Sprint("read ", e.Records))
		}
	}, queue, func() { drops++ })
	for i := range 4 {
		all.Emit(event.Read{Records: i})
		all.Emit(event.LeaseTaken{Shard: "1", Epoch: uint64(i)})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		queue.Run(func(err error) { t.Error(err) })
	}()
	queue.Close(time.Minute)
	<-done
	if want := []string{"read 0", "taken 3"}; !slices.Equal(got, want) || drops != 3 {
		t.Errorf("got %q after %d drops, want %q after 3", got, drops, want)
	}
	if n := queue.Counts(); n.Dropped != 3 || n.Coalesced != 3 {
		t.Errorf("%+v", n)
	}
}

// Without a function, an event costs nothing. With a function, it costs one allocation, for its
// value.
func TestAllocationsOfEvents(t *testing.T) {
	emit := func(to *Events) {
		if to.On() {
			to.Emit(event.BatchHandled{Stream: "s", Shard: "1", Records: 1, Took: time.Second})
		}
	}
	queue := notify.New(10)
	off := New(t.Context(), nil, queue, nil)
	if n := testing.AllocsPerRun(100, func() { emit(off) }); n != 0 {
		t.Errorf("%v allocations without a function", n)
	}
	called := make(chan struct{})
	on := New(t.Context(), func(context.Context, event.Event) { called <- struct{}{} }, queue, nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		queue.Run(func(err error) { t.Error(err) })
	}()
	if n := testing.AllocsPerRun(100, func() { emit(on); <-called }); n > 1 {
		t.Errorf("%v allocations with a function", n)
	}
	queue.Close(time.Minute)
	<-done
}
