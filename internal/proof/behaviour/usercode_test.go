package behaviour

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// This file tests user code other than handlers, which may be slow, panic, or never return.

func TestDiscoverStreamsMayPanicAndEndItsGoroutine(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		want := putSome(t, srv, false)
		var failed []string
		calls := 0
		opts := weir.Options{
			App: "app", Logger: quiet, OnEvent: event.On(func(_ context.Context, e event.StoreFailed) { failed = append(failed, string(e.Op)+": "+e.Err.Error()) }),
			DiscoverStreams: func(context.Context) ([]string, error) {
				switch calls++; calls {
				case 1:
					panic("a bug")
				case 2:
					runtime.Goexit()
				}
				return []string{"s"}, nil
			},
		}
		c, err := weir.New(srv.Client(), memstore.New(), opts)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var got []string
		if err := c.Run(ctx, weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
			got = append(got, data(b.Records)...)
			return nil
		})); err != nil {
			t.Error(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("handled %q, want %q", got, want)
		}
		if len(failed) != 2 || !strings.Contains(failed[0], "DiscoverStreams panicked: a bug") || !strings.Contains(failed[1], "ended its goroutine") {
			t.Errorf("told of %q", failed)
		}
	})
}

// A DiscoverStreams that does not return when its context ends is not called again before it
// returns. It delays the end of Run by a second.
func TestDiscoverStreamsMayHang(t *testing.T) {
	for _, first := range []bool{true, false} {
		bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
			goOn := make(chan struct{})
			var calls atomic.Int32
			failures := 0
			opts := weir.Options{
				App: "app", Logger: quiet, Timing: weir.Timing{ListInterval: 30 * time.Second},
				OnEvent: event.On(func(_ context.Context, _ event.StoreFailed) { failures++ }),
				DiscoverStreams: func(context.Context) ([]string, error) {
					if calls.Add(1) == 2 || first {
						<-goOn
					}
					return []string{"s"}, nil
				},
			}
			c, err := weir.New(srv.Client(), memstore.New(), opts)
			if err != nil {
				t.Fatal(err)
			}
			s := newSink(t)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- c.Run(ctx, weir.HandlerFunc(s.handle)) }()
			for range 10 {
				fill(srv, s, 3, 2)
				time.Sleep(time.Minute)
			}
			if missing := s.missing(); first != (missing > 0) {
				t.Errorf("it hangs from the first call on: %v; %d records are not handled", first, missing)
			}
			began := time.Now()
			cancel()
			if err := <-done; !errors.Is(err, weir.ErrAbandoned) || !strings.Contains(err.Error(), "DiscoverStreams") {
				t.Errorf("Run returned %v", err)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("Run returned after %v", took)
			}
			if n := calls.Load(); n > 2 || failures == 0 {
				t.Errorf("%d calls, %d failures told", n, failures)
			}
			close(goOn)
		})
	}
}

// oddStore is a store with calls that panic, or that hang although their contexts have ended.
type oddStore struct {
	lease.Store
	panic float64 // fraction of the calls
	hang  atomic.Pointer[chan struct{}]
}

func (s *oddStore) odd() {
	if hang := s.hang.Load(); hang != nil {
		<-*hang
	}
	if rand.Float64() < s.panic {
		panic("a bug in the store")
	}
}

func (s *oddStore) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	s.odd()
	return s.Store.Heartbeat(ctx, app, r)
}

func (s *oddStore) View(ctx context.Context, app, since string) (lease.View, error) {
	s.odd()
	return s.Store.View(ctx, app, since)
}

func (s *oddStore) Apply(ctx context.Context, app string, a []lease.Action) ([]bool, error) {
	s.odd()
	return s.Store.Apply(ctx, app, a)
}

func (s *oddStore) Lead(ctx context.Context, app, session string, term uint64) (bool, error) {
	s.odd()
	return s.Store.Lead(ctx, app, session, term)
}

func (s *oddStore) Leave(ctx context.Context, app string, r lease.Report) error {
	s.odd()
	return s.Store.Leave(ctx, app, r)
}

func TestAStoreMayPanic(t *testing.T) {
	for _, part := range []float64{.1, .3, .5} {
		bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
			s := newSink(t)
			fill(srv, s, 20, 10)
			var mu sync.Mutex
			told := map[event.StoreOp]bool{}
			opts := weir.Options{OnEvent: event.On(func(_ context.Context, e event.StoreFailed) {
				mu.Lock()
				defer mu.Unlock()
				told[e.Op] = told[e.Op] || strings.Contains(e.Err.Error(), "a bug in the store")
			})}
			stop := start(t, srv.Client(), &oddStore{Store: memstore.New(), panic: part}, opts, s.handle)
			until(t, "everything handled", 3*time.Minute, func() bool { return s.missing() == 0 })
			time.Sleep(3 * time.Minute) // of a minute's heartbeats, none might panic
			if err := stop(); err != nil {
				t.Error(err)
			}
			s.judge()
			if !told[event.OpHeartbeat] {
				t.Errorf("%v of the calls panic: told of %v", part, told)
			}
		})
	}
}

// A store that never answers, even when a call's context ends, keeps Run from returning. It has no
// other effect: the contexts of handlers end in time, and another worker takes over.
func TestAStoreThatHangsEndsLeaseValidity(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		want := putSome(t, srv, false)
		shared := memstore.New()
		store, goOn := &oddStore{Store: shared}, make(chan struct{})
		told := make(chan error, 1)
		stop := start(t, srv.Client(), store, weir.Options{}, func(ctx context.Context, b *weir.Batch) error {
			store.hang.Store(&goOn)
			began := time.Now()
			<-ctx.Done()
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("the handler was told after %v", took)
			}
			told <- context.Cause(ctx)
			return ctx.Err()
		})
		if cause := <-told; !errors.Is(cause, weir.ErrLeaseLost) {
			t.Errorf("because of %v", cause)
		}
		if got := handled(t, srv, shared, weir.Options{}); !slices.Equal(got, want) {
			t.Errorf("another worker handled %q, want %q", got, want)
		}
		stopped := make(chan error, 1)
		go func() { stopped <- stop() }()
		time.Sleep(5 * time.Minute)
		if len(stopped) > 0 {
			t.Error("Run has returned while a call of the store was under way")
		}
		store.hang.Store(nil)
		close(goOn)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// transport is an HTTP transport that may hang although the context of the request has ended.
type transport struct {
	http.RoundTripper
	hang atomic.Pointer[chan struct{}]
}

func (tr *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if hang := tr.hang.Load(); hang != nil {
		<-*hang
		return nil, io.ErrUnexpectedEOF
	}
	return tr.RoundTripper.RoundTrip(r)
}

// Credentials or an HTTP client that hang keep shards from being read, and Run from returning.
// Heartbeats continue, and the leases move to a worker that can read. Late results are ignored.
func TestCredentialsAndHTTPClientsMayHang(t *testing.T) {
	for _, what := range []string{"credentials", "an HTTP client"} {
		t.Run(what, func(t *testing.T) {
			bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
				s := newSink(t)
				store, goOn := memstore.New(), make(chan struct{})
				var hangs atomic.Bool
				tr := &transport{RoundTripper: srv.Transport()}
				client := srv.Client(func(o *kinesis.Options) {
					if what != "credentials" {
						o.HTTPClient = &http.Client{Transport: tr}
						return
					}
					o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
						if hangs.Load() {
							<-goOn
						}
						return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
					})
				})
				opts := weir.Options{Timing: weir.Timing{StallAfter: 35 * time.Second}}
				stopA := start(t, client, store, opts, s.handle)
				fill(srv, s, 10, 3)
				until(t, "the first records handled", time.Minute, func() bool { return s.missing() == 0 })
				hangs.Store(true)
				tr.hang.Store(&goOn)
				time.Sleep(20 * time.Second)
				v, err := store.View(t.Context(), "app", "")
				if err != nil || len(v.Workers) != 1 {
					t.Fatalf("%+v, %v", v.Workers, err)
				}
				before := v.Workers[0].Heartbeats
				time.Sleep(10 * time.Second)
				if v, err = store.View(t.Context(), "app", ""); err != nil || v.Workers[0].Heartbeats < before+5 {
					t.Errorf("its heartbeats stand still: %d, and %d after ten seconds", before, v.Workers[0].Heartbeats)
				}
				stopB := start(t, srv.Client(), store, opts, s.handle)
				fill(srv, s, 10, 3)
				until(t, "everything handled", 5*time.Minute, func() bool { return s.missing() == 0 })
				if err := stopB(); err != nil {
					t.Error(err)
				}
				stopped := make(chan error, 1)
				go func() { stopped <- stopA() }()
				time.Sleep(5 * time.Minute)
				select {
				case err := <-stopped:
					t.Errorf("Run has returned %v while calls of its were under way", err)
					return
				default:
				}
				hangs.Store(false)
				tr.hang.Store(nil)
				close(goOn)
				// If Run returns an error, the error names the shards whose calls had not returned.
				if err := <-stopped; err != nil && !errors.Is(err, weir.ErrAbandoned) {
					t.Errorf("Run returned %v", err)
				}
				s.judge()
			})
		})
	}
}
