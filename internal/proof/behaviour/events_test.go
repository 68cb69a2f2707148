package behaviour

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// A hook may take as long as FailoverAfter. That costs no lease and no record.
func TestASlowHookHoldsNothingUp(t *testing.T) {
	bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
		var c *weir.Consumer
		var lost []event.LeaseEnded
		opts := weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet, OnEvent: event.Join(
			event.On(func(context.Context, event.LeaseTaken) { time.Sleep(5 * time.Second) }),
			event.On(func(_ context.Context, e event.LeaseEnded) { lost = append(lost, e) }),
		)}
		c, err := weir.New(srv.Client(), memstore.New(), opts)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var late time.Duration
		handled := 0
		done := make(chan error)
		go func() {
			done <- c.Run(ctx, weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
				mu.Lock()
				defer mu.Unlock()
				for _, r := range b.Records {
					handled++
					late = max(late, time.Since(r.ArrivalTime()))
				}
				return nil
			}))
		}()
		time.Sleep(10 * time.Second)
		for i := range 600 {
			srv.Put("s", fmt.Sprint(i), []byte("x"))
			time.Sleep(time.Second)
		}
		time.Sleep(5 * time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if handled != 600 || late > 3*time.Second {
			t.Errorf("%d of 600 records were handled, up to %v late", handled, late)
		}
		for _, e := range lost {
			if e.Reason != event.EndStopped {
				t.Errorf("%s ended as %v", e.Shard, e.Reason)
			}
		}
		if n := c.Counts(); n.LeasesLost > 0 || n.LeasesTaken != 4 || n.RecordsHandled != 600 || n.EventsDropped > 0 {
			t.Errorf("%+v", n)
		}
	})
}

func TestAHookThatNeverReturns(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		hang := make(chan struct{})
		defer close(hang)
		handled := 0
		opts := weir.Options{OnEvent: event.On(func(context.Context, event.BatchHandled) { <-hang })}
		stop := start(t, srv.Client(), memstore.New(), opts, func(context.Context, *weir.Batch) error { handled++; return nil })
		for range 100 {
			srv.Put("s", "key", []byte("x"))
			time.Sleep(2 * time.Second)
		}
		began := time.Now()
		if err := stop(); !errors.Is(err, weir.ErrAbandoned) || !strings.Contains(err.Error(), "Options.OnEvent") {
			t.Errorf("Run returned %v", err)
		}
		if took := time.Since(began); handled != 100 || took > 15*time.Second {
			t.Errorf("%d batches were handled, and Run took %v to stop", handled, took)
		}
	})
}

// Counts never decrease, neither while a stopping Run waits for a hook nor afterwards.
func TestCountsOfEventsNeverGoBack(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		opts := weir.Options{App: "app", Streams: []string{"s"}, Logger: slog.New(slog.DiscardHandler), OnEvent: event.Join(
			event.On(func(context.Context, event.LeaseTaken) { panic("oh no") }),
			event.On(func(context.Context, event.LeaseEnded) { time.Sleep(3 * time.Second) }),
		)}
		c, err := weir.New(srv.Client(), memstore.New(), opts)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- c.Run(ctx, weir.HandlerFunc(func(context.Context, *weir.Batch) error { return nil }))
		}()
		time.Sleep(10 * time.Second)
		cancel()
		for over := false; !over; {
			select {
			case err := <-done:
				if over = true; err != nil {
					t.Error(err)
				}
			case <-time.After(100 * time.Millisecond):
			}
			if n := c.Counts().EventsPanicked; n != 1 {
				t.Fatalf("EventsPanicked is %d, want 1", n)
			}
		}
	})
}

// A hook that panics stops nothing. Hooks may call the consumer.
func TestHooksThatPanicAndCallBack(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		var c *weir.Consumer
		called := map[string]int{}
		logs := &logLines{}
		opts := weir.Options{App: "app", Streams: []string{"s"}, Logger: slog.New(slog.NewTextHandler(logs, nil)), OnEvent: event.Join(
			event.On(func(context.Context, event.LeaseTaken) { panic("oh no") }),
			event.On(func(ctx context.Context, e event.BatchHandled) {
				called[fmt.Sprint(ctx.Value(traceKey{}))] += len(c.Shards())
				_, _, _ = c.Counts(), c.Live(), c.Ready()
			}),
		)}
		c, err := weir.New(srv.Client(), memstore.New(), opts)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), traceKey{}, "trace"))
		done := make(chan error)
		go func() {
			done <- c.Run(ctx, weir.HandlerFunc(func(context.Context, *weir.Batch) error { return nil }))
		}()
		srv.Put("s", "key", []byte("x"))
		time.Sleep(10 * time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if called["trace"] != 1 || c.Counts().EventsPanicked != 1 || !strings.Contains(logs.String(), "oh no") {
			t.Errorf("called with %v, %+v, log %q", called, c.Counts(), logs)
		}
	})
}

type traceKey struct{}

type logLines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// The events of a shard arrive in order, with the right times and details.
func TestEventsOfAShardAreToldInOrder(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		var got []string
		var times []time.Time
		add := func(at time.Time, format string, args ...any) {
			got, times = append(got, fmt.Sprintf(format, args...)), append(times, at)
		}
		failed := false
		opts := weir.Options{OnEvent: event.Join(
			event.On(func(_ context.Context, e event.LeaseTaken) { add(e.Time, "taken from %v", e.From) }),
			event.On(func(_ context.Context, e event.LeaseEnded) { add(e.Time, "ended %v", e.Reason) }),
			event.On(func(_ context.Context, e event.Read) { add(e.Time, "read %d", e.Records) }),
			event.On(func(_ context.Context, e event.BatchBegins) { add(e.Time, "begins %d, %d", e.Records, e.Attempt) }),
			event.On(func(_ context.Context, e event.BatchHandled) {
				add(e.Time, "handled %d after %d", e.Records, e.Attempts)
			}),
			event.On(func(_ context.Context, e event.HandlerFailed) { add(e.Time, "failed %d", e.Attempt) }),
			event.On(func(_ context.Context, e event.CheckpointSaved) { add(e.Time, "saved") }),
			event.On(func(_ context.Context, e event.Leading) { add(e.Time, "leads %v, %d", e.Leads, e.Epoch) }),
		)}
		put(srv, 1, 3)
		stop := start(t, srv.Client(), memstore.New(), opts, func(context.Context, *weir.Batch) error {
			if !failed {
				failed = true
				return errors.New("oh")
			}
			return nil
		})
		time.Sleep(10 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		want := []string{
			"leads true, 1", "taken from oldest", "read 3", "begins 3, 1", "failed 1", "begins 3, 2", "handled 3 after 2", "saved", "ended stopped", "leads false, 1",
		}
		if !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
		if !slices.IsSortedFunc(times, time.Time.Compare) || times[0].IsZero() {
			t.Errorf("at %v", times)
		}
	})
}

// Reads that fail repeatedly are logged after a while, and again when they succeed. If many shards
// fail, some lines sum up the others.
func TestReadsThatFailForLongAreToldOnce(t *testing.T) {
	const shards = 40
	bubble(t, shards, func(t *testing.T, srv *kinesistest.Server) {
		logs := &logLines{}
		failing := false
		var mu sync.Mutex
		srv.Control("GetRecords", func(*kinesistest.Call) kinesistest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if failing {
				return kinesistest.Fault{Err: &kinesistest.Error{Code: "InternalFailure", Status: 500}}
			}
			return kinesistest.Fault{}
		})
		set := func(on bool) {
			mu.Lock()
			defer mu.Unlock()
			failing = on
		}
		opts := weir.Options{Logger: slog.New(slog.NewTextHandler(logs, nil))}
		stop := start(t, srv.Client(), memstore.New(), opts, func(context.Context, *weir.Batch) error { return nil })
		time.Sleep(10 * time.Second)
		set(true)
		time.Sleep(4 * time.Second)
		if s := logs.String(); strings.Contains(s, "fails") {
			t.Errorf("told after 4 s: %s", s)
		}
		time.Sleep(54 * time.Second)
		set(false)
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		s := logs.String()
		for _, c := range []struct {
			text        string
			least, most int
		}{{"reading a shard fails repeatedly", 5, 30}, {"reading other shards of the stream fails too", 1, 6}, {"reading the shard works again", 5, shards}, {"InternalFailure", 5, 30}} {
			if n := strings.Count(s, c.text); n < c.least || n > c.most {
				t.Errorf("%q is told %d times, want %d to %d", c.text, n, c.least, c.most)
			}
		}
		if strings.Contains(s, "read in vain") || t.Failed() {
			t.Log(s)
		}
	})
}

// silentFarewell is a store whose Leave fails.
type silentFarewell struct{ *memstore.Store }

func (s silentFarewell) Leave(context.Context, string, lease.Report) error {
	return errors.New("no connection")
}

// The end of a lease is reported even if the store never learns of it.
func TestTheEndOfALeaseIsToldWithoutTheStore(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *kinesistest.Server) {
		ended := 0
		opts := weir.Options{OnEvent: event.On(func(_ context.Context, e event.LeaseEnded) {
			if ended++; e.Reason != event.EndStopped {
				t.Errorf("%s ended as %v", e.Shard, e.Reason)
			}
		})}
		stop := start(t, srv.Client(), silentFarewell{memstore.New()}, opts, func(context.Context, *weir.Batch) error { return nil })
		time.Sleep(20 * time.Second)
		// A heartbeat may release the leases before Leave. If not, Run returns an error about it.
		if err := stop(); err != nil && !errors.Is(err, weir.ErrNotReleased) {
			t.Error(err)
		}
		if ended != 3 {
			t.Errorf("%d of 3 ends were told", ended)
		}
	})
}
