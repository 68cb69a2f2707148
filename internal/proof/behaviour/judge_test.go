package behaviour

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// judged runs a consumer of one shard, calls f, and stops the consumer.
func judged(t *testing.T, o weir.Options, run func(context.Context, *weir.Consumer) error, f func(*kinesistest.Server, *faultyStore, *weir.Consumer)) {
	t.Helper()
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		store := &faultyStore{Store: memstore.New()}
		o.App, o.Streams, o.Logger = "app", []string{"s"}, quiet
		c, err := weir.New(srv.Client(), store, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- run(ctx, c) }()
		time.Sleep(10 * time.Second)
		f(srv, store, c)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// wantLags compares the three lags of the only shard with the wanted values. They may differ by 2
// s, because heartbeats and reads are a second apart.
func wantLags(t *testing.T, when string, c *weir.Consumer, read, handled, saved time.Duration) {
	t.Helper()
	all := c.Shards()
	if len(all) != 1 {
		t.Errorf("%s: %d shards", when, len(all))
		return
	}
	s := all[0]
	near := func(got, want time.Duration) bool { return got >= want-2*time.Second && got <= want+2*time.Second }
	if !near(s.ReadLag, read) || !near(s.HandledLag, handled) || !near(s.SavedLag, saved) {
		t.Errorf("%s: lags of %v, %v and %v, want %v, %v and %v", when, s.ReadLag, s.HandledLag, s.SavedLag, read, handled, saved)
	}
}

// hangs is a handler that can be made to hang.
type hangs struct{ on atomic.Pointer[chan struct{}] }

func (h *hangs) hang() (release func()) {
	c := make(chan struct{})
	h.on.Store(&c)
	return func() { h.on.Store(nil); close(c) }
}

func (h *hangs) Handle(ctx context.Context, _ *weir.Batch) error {
	if c := h.on.Load(); c != nil {
		select {
		case <-*c:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func TestLagsOfWhatIsReadHandledAndSaved(t *testing.T) {
	serial := func(h weir.Handler) func(context.Context, *weir.Consumer) error {
		return func(ctx context.Context, c *weir.Consumer) error { return c.Run(ctx, h) }
	}
	pulled := func(h weir.Handler) func(context.Context, *weir.Consumer) error {
		return func(ctx context.Context, c *weir.Consumer) error {
			return c.RunPull(ctx, weir.PullHandler{Pull: func(ctx context.Context, s *weir.Puller) error {
				for b, err := range s.Batches() {
					if err != nil {
						return err
					}
					if err := h.Handle(ctx, b); err != nil {
						return err
					}
					for _, r := range b.Records {
						if err := b.Done(r); err != nil {
							return err
						}
					}
				}
				return nil
			}})
		}
	}
	for name, c := range map[string]struct {
		o   weir.Options
		run func(weir.Handler) func(context.Context, *weir.Consumer) error
	}{
		"polled":            {weir.Options{}, serial},
		"buffers reused":    {weir.Options{ReuseBuffers: true}, serial},
		"by fan-out":        {weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutRegister}}, serial},
		"keys side by side": {weir.Options{Concurrency: weir.Concurrency{Keys: 8}}, serial},
		"pulled":            {weir.Options{}, pulled},
		"batches that wait": {weir.Options{Batching: weir.Batching{MaxRecords: 100, MaxWait: time.Second}}, serial},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hangs{}
			judged(t, c.o, c.run(h), func(srv *kinesistest.Server, store *faultyStore, consumer *weir.Consumer) {
				wantLags(t, "nothing was put", consumer, 0, 0, 0)
				release := h.hang()
				srv.Put("s", "k", []byte("1"))
				time.Sleep(time.Minute)
				wantLags(t, "a record is with the handler", consumer, 0, time.Minute, time.Minute)
				srv.Put("s", "k", []byte("2"))
				time.Sleep(30 * time.Second)
				wantLags(t, "and another waits", consumer, 0, 90*time.Second, 90*time.Second)
				release()
				time.Sleep(10 * time.Second)
				wantLags(t, "all is handled and saved", consumer, 0, 0, 0)

				store.set(true, 0)
				srv.Put("s", "k", []byte("3"))
				time.Sleep(3 * time.Second) // its leases stay valid a little longer
				wantLags(t, "the store is away", consumer, 0, 0, 3*time.Second)
				store.set(false, 0)
				time.Sleep(20 * time.Second)
				wantLags(t, "it is back", consumer, 0, 0, 0)
			})
		})
	}
}

func TestLagGrowsWhileReadsFail(t *testing.T) {
	h := &hangs{}
	judged(t, weir.Options{}, func(ctx context.Context, c *weir.Consumer) error { return c.Run(ctx, h) }, func(srv *kinesistest.Server, _ *faultyStore, c *weir.Consumer) {
		srv.Control("GetRecords", func(*kinesistest.Call) kinesistest.Fault {
			return kinesistest.Fault{Err: &kinesistest.Error{Code: "InternalFailure"}}
		})
		srv.Put("s", "k", []byte("1"))
		time.Sleep(time.Minute)
		wantLags(t, "reads have failed for a minute", c, time.Minute, time.Minute, time.Minute)
		srv.Control("GetRecords", nil)
		time.Sleep(20 * time.Second)
		wantLags(t, "they succeed again", c, 0, 0, 0)
	})
}

func TestAConsumerJudgesItsShards(t *testing.T) {
	var failing atomic.Pointer[error]
	handler := weir.HandlerFunc(func(context.Context, *weir.Batch) error {
		if err := failing.Load(); err != nil {
			return *err
		}
		return nil
	})
	judged(t, weir.Options{}, func(ctx context.Context, c *weir.Consumer) error { return c.Run(ctx, handler) }, func(srv *kinesistest.Server, _ *faultyStore, c *weir.Consumer) {
		if sum, all := c.Health(); sum.State != health.OK || len(all) != 1 || all[0].Name != srv.OpenShards("s")[0] {
			t.Errorf("at the tip: %+v of %+v", sum, all)
		}
		down := errors.New("the secret database is down")
		failing.Store(&down)
		srv.Put("s", "k", []byte("1"))
		for range 20 {
			time.Sleep(15 * time.Second)
			c.Health()
		}
		sum, all := c.Health()
		if sum.State != health.Stalled || all[0].Err == "" || !strings.Contains(sum.Sentence, down.Error()) {
			t.Errorf("after five minutes of failures: %+v of %+v", sum, all)
		}
		if lag := sum.Lag; lag < 299*time.Second || lag > 302*time.Second {
			t.Errorf("its lag is %v", lag)
		}
		if sentence := spoken(t, c); strings.Contains(sentence, "secret") || !strings.HasPrefix(sentence, "stalled: ") {
			t.Errorf("over HTTP it says %q", sentence)
		}
		failing.Store(nil)
		time.Sleep(time.Minute)
		if sum, _ := c.Health(); sum.State != health.OK {
			t.Errorf("a minute later: %+v", sum)
		}
	})
}

// spoken returns the sentence about the shards in the answer of [weir.Consumer.HealthHandler].
func spoken(t *testing.T, c *weir.Consumer) string {
	t.Helper()
	w := httptest.NewRecorder()
	c.HealthHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/livez", nil))
	var answer struct{ Verdict health.Verdict }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Verdict.Text(80)
}

// A worker that is cut off says so in its verdict, and since when, although it releases its shard
// and takes it again every few minutes.
func TestTheVerdictOfAWorkerThatIsCutOff(t *testing.T) {
	judged(t, weir.Options{}, func(ctx context.Context, c *weir.Consumer) error {
		return c.Run(ctx, weir.HandlerFunc(func(context.Context, *weir.Batch) error { return nil }))
	}, func(srv *kinesistest.Server, _ *faultyStore, c *weir.Consumer) {
		cut := time.Now()
		srv.Control("", func(*kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{Cut: true} })
		time.Sleep(2*time.Minute + 20*time.Second)
		bad := 0
		for range 60 {
			time.Sleep(10 * time.Second)
			v := c.Verdict()
			if len(c.Shards()) == 0 { // it holds none at the moment
				continue
			}
			if v.State != health.Stalled || v.Cause != health.CauseCutOff || v.Since.Sub(cut).Abs() > 10*time.Second {
				bad++
				t.Logf("after %v: %s since %v; %s", time.Since(cut), v.Sentence, v.Since, v.Because())
			}
		}
		if bad > 0 {
			t.Errorf("%d verdicts of 60 were wrong", bad)
		}
		srv.Control("", nil)
		time.Sleep(time.Minute)
		if v := c.Verdict(); v.State != health.OK {
			t.Errorf("later it says %s", v.Sentence)
		}
	})
}
