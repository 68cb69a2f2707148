package behaviour

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

var errMine = errors.New("the handler's own")

// TestRunReturnsWhatItDidNotKeep stops Run while the store or the handler fails, and checks the
// error of Run.
func TestRunReturnsWhatItDidNotKeep(t *testing.T) {
	for _, c := range []struct {
		name string
		// handle handles a record that is put while the store is down.
		handle   func(ctx context.Context, store *faultyStore) error
		back     time.Duration // how long the store is down; 0 means forever
		stopLate time.Duration // time between the failure of the store and the stop of Run
		other    bool          // another worker is alive, whose store answers
		is, not  []error
		says     string
	}{
		{name: "nothing fails", back: time.Nanosecond, not: []error{weir.ErrNotSaved, weir.ErrNotReleased}},
		{name: "the store is down, and a record was handled", is: []error{weir.ErrNotSaved, weir.ErrNotReleased, errUnreachable}, says: "s/shardId-000000000000"},
		{
			name: "the store is down, and the handler fails", handle: func(context.Context, *faultyStore) error { return errMine },
			is: []error{weir.ErrNotReleased}, not: []error{weir.ErrNotSaved, errMine},
		},
		{
			name: "the store is down, and the handler asks to stop", handle: func(context.Context, *faultyStore) error { return weir.Stop(errMine) },
			is: []error{errMine, weir.ErrNotReleased}, not: []error{weir.ErrNotSaved},
		},
		{
			name:   "the store is down, and the handler does not return",
			handle: func(_ context.Context, s *faultyStore) error { time.Sleep(10 * time.Minute); return nil },
			is:     []error{weir.ErrAbandoned, weir.ErrNotReleased}, not: []error{weir.ErrNotSaved},
		},
		{
			name:   "the store is down, and the stop timeout is over",
			handle: func(ctx context.Context, _ *faultyStore) error { <-ctx.Done(); return ctx.Err() },
			is:     []error{weir.ErrNotReleased}, not: []error{weir.ErrNotSaved, weir.ErrAbandoned},
		},
		{name: "the store is back in time", back: 3 * time.Second, not: []error{weir.ErrNotSaved, weir.ErrNotReleased}},
		{name: "the store is back when the leases are no longer valid", back: 15 * time.Second, stopLate: 12 * time.Second, not: []error{weir.ErrNotSaved, weir.ErrNotReleased}},
		{
			name: "another worker has ended the session during the stop", other: true, back: 11 * time.Second, stopLate: 7 * time.Second,
			is: []error{weir.ErrNotSaved}, not: []error{weir.ErrNotReleased},
		},
		{name: "another worker ended the session long before the stop", other: true, back: 15 * time.Second, stopLate: time.Minute, not: []error{weir.ErrNotSaved, weir.ErrNotReleased}},
		{
			name: "another worker has ended the session, and the store stays down", other: true, stopLate: 20 * time.Second,
			is: []error{weir.ErrNotSaved, weir.ErrNotReleased},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				shared := memstore.New()
				store := &faultyStore{Store: shared, deny: true}
				var mu sync.Mutex
				got := map[string]int{}
				stop := start(t, srv.Client(), store, weir.Options{Timing: weir.Timing{StopTimeout: 2 * time.Second}}, func(ctx context.Context, b *weir.Batch) error {
					mu.Lock()
					for _, r := range b.Records {
						got[string(r.Data)]++
					}
					mu.Unlock()
					if string(b.Records[0].Data) == "second" && c.handle != nil {
						return c.handle(ctx, store)
					}
					return nil
				})
				srv.Put("s", "key", []byte("first"))
				time.Sleep(5 * time.Second)
				if c.other {
					stopOther := start(t, srv.Client(), shared, weir.Options{}, func(_ context.Context, b *weir.Batch) error {
						mu.Lock()
						defer mu.Unlock()
						for _, r := range b.Records {
							got[string(r.Data)]++
						}
						return nil
					})
					defer func() { _ = stopOther() }() // may fail, because the store may be down
					time.Sleep(5 * time.Second)
				}
				store.set(true, 0)
				srv.Put("s", "key", []byte("second"))
				if c.back > 0 {
					time.AfterFunc(c.back, func() { store.set(false, 0) })
				}
				time.Sleep(max(c.stopLate, 1500*time.Millisecond))
				err := stop()
				if err == nil && len(c.is) > 0 {
					t.Error("Run returned nil")
				}
				for _, is := range c.is {
					if !errors.Is(err, is) {
						t.Errorf("Run returned %v, which is no %v", err, is)
					}
				}
				for _, not := range c.not {
					if errors.Is(err, not) {
						t.Errorf("Run returned %v", err)
					}
				}
				if err != nil && len(c.is) == 0 || !strings.Contains(errors.Join(errors.New(""), err).Error(), c.says) {
					t.Errorf("Run returned %v, want %q in it", err, c.says)
				}
				time.Sleep(11 * time.Minute) // until abandoned handlers have returned
			})
		})
	}
}

// A worker without leases reports a stop that the store did not confirm, because the leader may
// have assigned a lease to it since the last answer.
func TestAWorkerWithoutLeasesReportsAStopThatIsNotConfirmed(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		shared := memstore.New()
		stopFirst := start(t, srv.Client(), shared, weir.Options{}, newSink(t).handle)
		time.Sleep(5 * time.Second)
		store := &faultyStore{Store: shared, deny: true}
		stop := start(t, srv.Client(), store, weir.Options{}, newSink(t).handle)
		time.Sleep(5 * time.Second)
		store.set(true, 0)
		if err := stop(); !errors.Is(err, weir.ErrNotReleased) || errors.Is(err, weir.ErrNotSaved) {
			t.Errorf("Run returned %v", err)
		}
		if err := stopFirst(); err != nil {
			t.Error(err)
		}
	})
}
