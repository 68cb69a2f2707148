package group

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// A stopping leader stays alive for a while if its handler ignores the stop timeout. Another worker
// leads during that time.
func TestALeaderThatWaitsForAHandlerLeadsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		release := make(chan struct{})
		join := func(name string, read func(*Term) error) (stop func(), done chan error) {
			ctx, stop := context.WithCancel(t.Context())
			done = make(chan error, 1)
			go func() {
				done <- Run(ctx, Config{
					Store: store, App: "app", Worker: name, Times: lease.Times{Heartbeat: time.Second, Failover: 5 * time.Second, Handoff: 30 * time.Second},
					Stop: 4 * time.Second, Streams: []string{"s"}, Start: shard.Oldest, ListInterval: time.Minute, Host: &HostFuncs{
						OnRead: read,
						OnList: func(context.Context, string, shard.Position) (Listing, error) {
							return Listing{Shards: []shard.Shard{{ID: "1"}}}, nil
						},
					},
					Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
				})
			}()
			time.Sleep(5 * time.Second)
			return stop, done
		}
		leads := func() string {
			v, err := store.View(t.Context(), "app", "")
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range v.Workers {
				if w.Session == v.Leader.Session {
					return w.Name
				}
			}
			return ""
		}
		stopA, a := join("a", func(*Term) error { <-release; return nil })
		stopB, b := join("b", func(term *Term) error { <-term.Reading().Done(); return nil })
		stopA()
		for range 7 {
			time.Sleep(time.Second)
			t.Logf("%q leads", leads())
		}
		if got := leads(); got != "b" {
			t.Errorf("%q leads 3 s after the stop timeout", got)
		}
		close(release)
		stopB()
		if errA, errB := <-a, <-b; errA != nil || errB != nil {
			t.Error(errA, errB)
		}
	})
}

// mute is a store whose answers to heartbeats are lost.
type mute struct {
	lease.Store
	gone bool // it does not answer Leave either
}

func (m mute) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	if _, err := m.Store.Heartbeat(ctx, app, r); err != nil {
		return lease.Orders{}, err
	}
	return lease.Orders{}, errors.New("the answer was lost")
}

func (m mute) Leave(ctx context.Context, app string, r lease.Report) error {
	if m.gone {
		<-ctx.Done()
		return ctx.Err()
	}
	return m.Store.Leave(ctx, app, r)
}

// If the answer to a session's first heartbeat is lost, the store has the session, and a leader
// would assign leases to it. The worker ends that session. If the worker holds no lease, a silent
// store delays the end of the worker by at most one heartbeat interval.
func TestASessionThatNobodyAnsweredIsNotLeftBehind(t *testing.T) {
	for _, gone := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := quietWorker()
			store := w.cfg.Store
			w.cfg.Store, w.cfg.Stop = mute{store, gone}, 4*time.Second
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- w.run(ctx) }()
			time.Sleep(w.cfg.Times.Heartbeat / 10)
			began := time.Now()
			cancel()
			if err := <-done; err == nil || !strings.Contains(err.Error(), "the answer was lost") {
				t.Errorf("Run ended with %v, not with why it never began", err)
			}
			if took := time.Since(began); took > w.cfg.Times.Heartbeat {
				t.Errorf("a worker that no store has answered stopped after %v", took)
			}
			v, err := store.View(t.Context(), "app", "")
			if left := len(v.Workers) > 0; err != nil || left != gone {
				t.Errorf("the sessions %v are left (%v)", v.Workers, err)
			}
		})
	}
}

// A stopping worker keeps its leases until their readers have returned, even after the stop
// timeout. Run returns the error of such a reader. No lease is valid after that.
func TestAStopGivesNothingBackThatIsStillRead(t *testing.T) {
	for _, lingers := range []time.Duration{time.Second, 3 * time.Second, 8 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			store := memstore.New()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			owner := func() string {
				v, err := store.View(t.Context(), "app", "")
				if err != nil || len(v.Leases) != 1 {
					t.Fatalf("there are %d leases, %v", len(v.Leases), err)
				}
				return v.Leases[0].Owner
			}
			began, last := "", "unread"
			var validity context.Context
			cfg := Config{
				Store: store, App: "app", Worker: "a", Times: lease.Times{Heartbeat: time.Second, Failover: 5 * time.Second, Handoff: 30 * time.Second},
				Stop: 2 * time.Second, Streams: []string{"s"}, Start: shard.Oldest, ListInterval: time.Minute,
				Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
				Host: &HostFuncs{
					OnList: func(context.Context, string, shard.Position) (Listing, error) {
						return Listing{Shards: []shard.Shard{{ID: "1"}}}, nil
					},
					OnRead: func(term *Term) error {
						began, validity = owner(), term.Validity()
						stop()
						<-term.Reading().Done()
						time.Sleep(lingers)
						last = owner()
						return errDown
					},
				},
			}
			if err := Run(ctx, cfg); !errors.Is(err, errDown) {
				t.Errorf("Run says %v, not what the reader did", err)
			}
			if validity == nil || validity.Err() == nil {
				t.Error("the leases are still valid")
			}
			if began == "" || last != began {
				t.Errorf("%v after it was to return the reader ended, and its lease was %q's, before %q's", lingers, last, began)
			}
			if now := owner(); now != "" {
				t.Errorf("after the stop the lease is %q's", now)
			}
		})
	}
}
