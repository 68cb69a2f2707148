package group

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/lease"
)

// deafOnce is a store whose heartbeats fail while down is set. If deaf is set, it ignores the next
// call of op.
type deafOnce struct {
	lease.Store
	down, deaf atomic.Bool
	op         string // the call that it ignores
}

func (s *deafOnce) silent(ctx context.Context, op string) error {
	if s.op == op && s.deaf.CompareAndSwap(true, false) {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (s *deafOnce) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	if s.down.Load() {
		return lease.Orders{}, errDown
	}
	if err := s.silent(ctx, "beat"); err != nil {
		return lease.Orders{}, err
	}
	return s.Store.Heartbeat(ctx, app, r)
}

func (s *deafOnce) Leave(ctx context.Context, app string, r lease.Report) error {
	if err := s.silent(ctx, "leave"); err != nil {
		return err
	}
	return s.Store.Leave(ctx, app, r)
}

// If the store ignores the last call, the worker repeats it before other workers count the session
// as dead.
func TestAFarewellThatIsNotAnsweredIsTriedAgain(t *testing.T) {
	for _, op := range []string{"beat", "leave"} {
		t.Run(op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := quietWorker()
				store := &deafOnce{Store: w.cfg.Store, op: op}
				w.cfg.Store = store
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- w.run(ctx) }()
				time.Sleep(10 * w.cfg.Times.Heartbeat)
				synctest.Wait()
				store.down.Store(op == "beat") // after an outage the worker sends a heartbeat first
				time.Sleep(2 * w.cfg.Times.Heartbeat)
				synctest.Wait()
				began := time.Now()
				store.deaf.Store(true)
				cancel()
				synctest.Wait()
				store.down.Store(false)
				if err := <-done; err != nil {
					t.Errorf("Run returned %v", err)
				}
				if store.deaf.Load() {
					t.Error("no call went without an answer")
				}
				if took := time.Since(began); took > w.cfg.Times.Failover*3/4 {
					t.Errorf("the worker stopped after %v", took)
				}
				v, err := store.View(t.Context(), "app", "")
				if err != nil || len(v.Workers) > 0 {
					t.Errorf("the sessions %v are left (%v)", v.Workers, err)
				}
			})
		})
	}
}

// gives is a store that assigns a lease with each heartbeat once now is set. Its Leave fails.
type gives struct {
	lease.Store
	down, now atomic.Bool
	lease     lease.Lease
}

func (s *gives) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	if s.down.Load() {
		return lease.Orders{}, errDown
	}
	o, err := s.Store.Heartbeat(ctx, app, r)
	if s.now.Load() {
		o.Held = append(o.Held, s.lease)
	}
	return o, err
}

func (s *gives) Leave(context.Context, string, lease.Report) error { return errDown }

// A lease that the store assigns in the answer to the last heartbeat counts as held if Leave fails.
func TestAStopNamesLeasesThatItsFarewellBrings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := quietWorker()
		key := lease.Key{Stream: "s", Shard: "1"}
		store := &gives{Store: w.cfg.Store, lease: lease.Lease{Key: key, Epoch: 2}}
		w.cfg.Store = store
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- w.run(ctx) }()
		time.Sleep(10 * w.cfg.Times.Heartbeat)
		store.down.Store(true)
		time.Sleep(2 * w.cfg.Times.Heartbeat)
		cancel()
		synctest.Wait()
		store.down.Store(false)
		store.now.Store(true)
		var stopped *StopError
		if err := <-done; !errors.As(err, &stopped) || !slices.Contains(stopped.Held, key) {
			t.Errorf("Run returned %v, which does not name %v", err, key)
		}
	})
}

// refusesLeave is a store whose Leave fails with an error.
type refusesLeave struct {
	lease.Store
	err error
}

func (s refusesLeave) Leave(context.Context, string, lease.Report) error { return s.err }

// The store may assign leases to a session in an answer that is lost. If Leave then fails, Run
// reports that leases may not be released.
func TestAStopBeforeTheFirstAnswerOfASession(t *testing.T) {
	for _, c := range []struct {
		name          string
		begun, beaten bool // an earlier session was answered; this session sent a heartbeat
		failed, leave error
		want          error
	}{
		{"the store has the farewell", true, true, nil, nil, nil},
		{"the store does not answer", true, true, nil, errDown, ErrNotReleased},
		{"the store does not answer, and Run reports that", false, true, errDown, errDown, nil},
		{"the only heartbeat was sent while it stopped", false, true, nil, errDown, ErrNotReleased},
		{"the store never had a heartbeat of it", true, false, nil, errDown, nil},
		{"the session is over", true, true, nil, lease.ErrSessionOver, nil},
		{"the store is not set up", true, true, nil, lease.ErrSetup, nil},
		{"the store has a newer format", true, true, nil, lease.ErrFormat, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := quietWorker()
				w.cfg.Store = refusesLeave{w.cfg.Store, c.leave}
				w.begun, w.beaten, w.failed = c.begun, c.beaten, c.failed
				if err := w.leave(t.Context()); !errors.Is(err, c.want) || (err != nil) != (c.want != nil) {
					t.Errorf("leave returned %v, want %v", err, c.want)
				}
			})
		})
	}
}

// After the last answer to a session, the leader may still assign leases to it. If the end of the
// session is not confirmed, Run therefore reports that leases may not be released, even if the
// worker knows of none.
func TestAStopThatTheStoreDoesNotConfirm(t *testing.T) {
	for _, c := range []struct {
		leave, want error
	}{{nil, nil}, {lease.ErrSessionOver, nil}, {errDown, ErrNotReleased}, {lease.ErrFormat, ErrNotReleased}} {
		synctest.Test(t, func(t *testing.T) {
			w := quietWorker()
			w.cfg.Store = refusesLeave{w.cfg.Store, c.leave}
			if _, err := w.cfg.Store.Heartbeat(t.Context(), "app", lease.Report{Session: "s", First: true}); err != nil {
				t.Fatal(err)
			}
			w.session, w.begun, w.beaten, w.first = "s", true, true, false
			if err := w.leave(t.Context()); !errors.Is(err, c.want) || (err != nil) != (c.want != nil) {
				t.Errorf("after %v leave returned %v, want %v", c.leave, err, c.want)
			}
		})
	}
}
