package shardrun

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/internal/delivery"
	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// forgetful is a store that can be cut off.
type forgetful struct {
	lease.Store
	down atomic.Bool
}

func (f *forgetful) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	if f.down.Load() {
		return lease.Orders{}, errors.New("cut off")
	}
	return f.Store.Heartbeat(ctx, app, r)
}

// No call of a handler begins after the lease validity has ended, even if the timer that ends the
// term's context is late. A call that began earlier may finish, but neither the next batch nor a
// retry may begin.
func TestNoHandlerIsCalledWithoutAValidLease(t *testing.T) {
	const failover = 5 * time.Second
	over := func(context.Context) { time.Sleep(failover) }
	for _, c := range []struct {
		name     string
		punctual bool // the timer is
		wait     func(ctx context.Context)
		handle   func(call int) error
		calls    int
	}{
		{"the lease is valid", true, func(context.Context) { time.Sleep(time.Second) }, func(int) error { return nil }, 2},
		{"… and the timer will be late", false, func(context.Context) { time.Sleep(time.Second) }, func(int) error { return nil }, 2},
		{"a page comes as the lease expires", true, func(ctx context.Context) { <-ctx.Done() }, func(int) error { return nil }, 0},
		{"a page comes after the end", false, over, func(int) error { return nil }, 0},
		{"a handler outlasts the lease", false, func(context.Context) {}, func(int) error { time.Sleep(failover); return nil }, 1},
		{"a handler outlasts the lease and fails", false, func(context.Context) {}, func(int) error { time.Sleep(failover); return errors.New("too slow") }, 1},
		{"a handler is to be called again", false, func(context.Context) { time.Sleep(failover * 9 / 10 * 99 / 100) }, func(int) error { return errors.New("once more") }, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, calls := &forgetful{Store: memstore.New()}, 0
			log := slog.New(slog.NewTextHandler(io.Discard, nil))
			cfg := Config{Times: lease.Times{Heartbeat: time.Second, Failover: failover, Handoff: 30 * time.Second}, Batch: 1, RetryMin: time.Second, RetryMax: time.Second, SuspectAfter: 2}
			in := shared(t, cfg, func(delivery.Part) error { calls++; return c.handle(calls) })
			judged := make(chan struct{})
			read := func(term *group.Term) error {
				select {
				case <-judged: // the lease is still ours, and valid again
					<-term.Reading().Done()
					return nil
				default:
				}
				defer close(judged)
				store.down.Store(true)
				if !c.punctual {
					timerOf(t, term).Stop()
				}
				page := source.Page{Records: []source.Record{{SequenceNumber: "1", Done: shard.Whole}, {SequenceNumber: "2", Done: shard.Whole}}}
				l := NewTestLoop(in, term, &onePage{wait: c.wait, page: page})
				began := time.Now()
				if n := l.read(); n.err != nil {
					t.Errorf("%s: %v", c.name, n.err)
				}
				if calls != c.calls {
					t.Errorf("%s: the handler was called %d times, want %d; since a heartbeat was answered %v have passed", c.name, calls, c.calls, time.Since(began))
				}
				return nil
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				done <- group.Run(ctx, group.Config{
					Store: store, App: "app", Worker: "w", Times: lease.Times{Heartbeat: time.Second, Failover: failover, Handoff: 30 * time.Second},
					Stop: 10 * time.Second, Streams: []string{"s"}, Start: shard.Oldest, ListInterval: time.Minute, Host: &group.HostFuncs{
						OnRead: read,
						OnList: func(context.Context, string, shard.Position) (group.Listing, error) {
							return group.Listing{Shards: []shard.Shard{{ID: "1"}}}, nil
						},
					}, Log: log,
				})
			}()
			<-judged
			store.down.Store(false)
			time.Sleep(time.Minute)
			stop()
			if err := <-done; err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
}

// timerOf returns the timer that ends the lease validity of a term's worker.
func timerOf(t *testing.T, term *group.Term) *time.Timer {
	t.Helper()
	timer := reflect.ValueOf(term).Elem().FieldByName("validity").Elem().FieldByName("timer")
	if timer.Type() != reflect.TypeFor[*time.Timer]() || timer.IsNil() {
		t.Fatalf("validity has no timer, but %v", timer)
	}
	return (*time.Timer)(timer.UnsafePointer())
}
