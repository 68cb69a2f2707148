package behaviour

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// link is the connection of one worker to the service. It can be cut.
type link struct {
	http.RoundTripper
	down atomic.Bool
}

func (l *link) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.down.Load() {
		return nil, errUnreachable
	}
	return l.RoundTripper.RoundTrip(r)
}

func linked(srv *kinesistest.Server) (*link, *kinesis.Client) {
	l := &link{RoundTripper: srv.Transport()}
	return l, srv.Client(func(o *kinesis.Options) { o.HTTPClient = &http.Client{Transport: l} })
}

// told collects the reported stalls.
type told struct {
	mu     sync.Mutex
	stalls []event.Stalled
	ended  []string
}

func (s *told) events() func(context.Context, event.Event) {
	return event.Join(
		event.On(func(_ context.Context, e event.Stalled) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.stalls = append(s.stalls, e)
		}),
		event.On(func(_ context.Context, e event.LeaseEnded) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ended = append(s.ended, e.Reason.String())
		}),
	)
}

func (s *told) all() []event.Stalled {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.stalls)
}

// reasons returns the reasons why leases ended.
func (s *told) reasons() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ended)
}

// holders returns the sorted names of the workers that hold a lease of "s".
func holders(t *testing.T, store lease.Store) (names []string) {
	t.Helper()
	return slices.Sorted(maps.Keys(held(t, store)))
}

// held returns the number of leases of each worker that has any.
func held(t *testing.T, store lease.Store) map[string]int {
	t.Helper()
	v, err := store.View(t.Context(), "app", "")
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, l := range v.Leases {
		for _, w := range v.Workers {
			if w.Session == l.Owner {
				n[w.Name]++
			}
		}
	}
	return n
}

func TestAWorkerThatIsCutOffFromTheServiceGivesItsShardsAway(t *testing.T) {
	for _, by := range []string{"own calls", "by the SDK"} {
		bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
			s, store := newSink(t), memstore.New()
			var events told
			a, client := linked(srv)
			stopA := start(t, forced(client, by), store, weir.Options{Worker: "a", OnEvent: events.events()}, s.handle)
			stopB := start(t, srv.Client(), store, weir.Options{Worker: "b"}, s.handle)
			until(t, "both have some", time.Minute, func() bool { return len(holders(t, store)) == 2 })
			a.down.Store(true)
			time.Sleep(90 * time.Second)
			if stalls := events.all(); len(stalls) > 0 {
				t.Errorf("after 90 s: %+v", stalls)
			}
			v, err := store.View(t.Context(), "app", "")
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range v.Workers {
				if (w.Name == "a") != (len(w.Troubles) == 3) || (w.Name == "a") != w.CutOff() {
					t.Errorf("%s reports %+v", w.Name, w.Troubles)
				}
			}
			fill(srv, s, 20, 5)
			until(t, "b handles everything", 2*time.Minute, func() bool { return s.missing() == 0 })
			for _, e := range events.all() {
				took := time.Since(e.Since)
				if e.Stream != "s" || e.Shard == "" || e.Epoch == 0 || e.Err == nil || e.Abandoned || took < 2*time.Minute || took > 2*time.Minute+10*time.Second {
					t.Errorf("%+v", e)
				}
			}
			if err := errors.Join(stopA(), stopB()); err != nil {
				t.Error(err)
			}
			s.judge()
			if !slices.Contains(events.reasons(), "stalled") {
				t.Errorf("leases ended because %v", events.reasons())
			}
			if s.again != 0 {
				t.Errorf("%d records were handled twice", s.again)
			}
		})
	}
}

func TestAnOutageOfTheServiceIsNoStormOfMoves(t *testing.T) {
	for workers := 1; workers <= 2; workers++ {
		bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
			s, store := newSink(t), memstore.New()
			var events told
			var links []*link
			var stops []func() error
			for range workers {
				l, client := linked(srv)
				links = append(links, l)
				stops = append(stops, start(t, client, store, weir.Options{OnEvent: events.events()}, s.handle))
			}
			fill(srv, s, 20, 5)
			until(t, "everything handled", time.Minute, func() bool { return s.missing() == 0 })
			for _, l := range links {
				l.down.Store(true)
			}
			fill(srv, s, 20, 5)
			time.Sleep(time.Hour)
			// In a worker, reads of a shard may fail for 2 minutes before the shard stalls, and
			// then for 4, 8 and 16 minutes. Sometimes a worker that has not had a shard for long
			// has forgotten one of the shard's stalls.
			if n := len(events.all()); n < 4*2 || n > 4*6*workers {
				t.Errorf("%d workers: %d stalls of 4 shards within an hour", workers, n)
			}
			for _, l := range links {
				l.down.Store(false)
			}
			until(t, "what came meanwhile handled", time.Minute, func() bool { return s.missing() == 0 })
			// No shard has stalled since then. So reads may again fail for only 2 minutes before a
			// shard stalls, unless the shard has moved to the other worker, which remembers the
			// earlier stalls.
			time.Sleep(time.Minute)
			before := len(events.all())
			for _, l := range links {
				l.down.Store(true)
			}
			if workers == 1 {
				until(t, "all shards stall again", 3*time.Minute, func() bool { return len(events.all()) >= before+4 })
			}
			for _, l := range links {
				l.down.Store(false)
			}
			time.Sleep(time.Minute)
			for _, stop := range stops {
				if err := stop(); err != nil {
					t.Error(err)
				}
			}
			s.judge()
			if s.again != 0 {
				t.Errorf("%d records were handled twice", s.again)
			}
		})
	}
}

// An error that every worker would receive moves no lease.
func TestWhatIsTheSameEverywhereIsNoStall(t *testing.T) {
	for code, errText := range map[string]string{"ProvisionedThroughputExceededException": "", "handler": "the disk is full"} {
		bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
			var events told
			if code != "handler" {
				srv.Control("GetRecords", func(*kinesistest.Call) kinesistest.Fault {
					return kinesistest.Fault{Err: &kinesistest.Error{Code: code}}
				})
			}
			srv.Put("s", "k", []byte("x"))
			store := memstore.New()
			stop := start(t, srv.Client(), store, weir.Options{OnEvent: events.events()}, func(context.Context, *weir.Batch) error {
				return errors.New(errText)
			})
			time.Sleep(time.Hour)
			v, err := store.View(t.Context(), "app", "")
			if err != nil {
				t.Fatal(err)
			}
			if n := len(v.Workers[0].Troubles); n == 0 {
				t.Error("no trouble is reported")
			}
			for _, tr := range v.Workers[0].Troubles {
				if tr.For < 59*time.Minute || tr.For > time.Hour || !strings.Contains(tr.Why, errText) || tr.State == "" {
					t.Errorf("%+v", tr)
				}
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			if stalls := events.all(); len(stalls) > 0 {
				t.Errorf("%s: %+v", code, stalls)
			}
		})
	}
}

func TestAHandlerThatTakesTooLongGivesItsShardAway(t *testing.T) {
	bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
		s, store := newSink(t), memstore.New()
		var events told
		causes := make(chan error, 10)
		stopA := start(t, srv.Client(), store, weir.Options{Worker: "a", Timing: weir.Timing{HandlerTimeout: time.Minute}, OnEvent: events.events()},
			func(ctx context.Context, b *weir.Batch) error {
				defer s.enter(ctx, b)()
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return context.Cause(ctx)
			})
		stopB := start(t, srv.Client(), store, weir.Options{Worker: "b"}, s.handle)
		until(t, "both have some", time.Minute, func() bool { return len(holders(t, store)) == 2 })
		time.Sleep(10 * time.Second)
		fill(srv, s, 20, 5)
		took := until(t, "b handles everything", 2*time.Minute, func() bool { return s.missing() == 0 })
		if took < 59*time.Second || took > 70*time.Second {
			t.Errorf("it took %v", took)
		}
		if cause := <-causes; !errors.Is(cause, weir.ErrStalled) {
			t.Errorf("the cause was %v", cause)
		}
		if e := events.all(); len(e) == 0 || e[0].Reason != health.InHandler || e[0].Abandoned {
			t.Errorf("%+v", e)
		}
		if err := errors.Join(stopA(), stopB()); err != nil {
			t.Error(err)
		}
		s.judge()
	})
}

func TestAHandlerThatIgnoresItsContextIsAbandoned(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		store := memstore.New()
		var events told
		var calls atomic.Int32
		hang := make(chan struct{})
		c, err := weir.New(srv.Client(), store, weir.Options{
			App: "app", Streams: []string{"s"}, Logger: quiet, Timing: weir.Timing{HandlerTimeout: time.Minute}, OnEvent: events.events(),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- c.Run(ctx, weir.HandlerFunc(func(context.Context, *weir.Batch) error {
				calls.Add(1)
				<-hang
				return nil
			}))
		}()
		srv.Put("s", "k", []byte("x"))
		until(t, "the handler is called", 10*time.Second, func() bool { return calls.Load() == 1 })
		time.Sleep(time.Minute + 29*time.Second)
		if e := events.all(); len(e) != 1 || e[0].Abandoned || c.Live() != nil {
			t.Errorf("before the handoff timeout: %+v, %v", e, c.Live())
		}
		time.Sleep(4 * time.Second)
		if e := events.all(); len(e) != 2 || !e[1].Abandoned {
			t.Errorf("after the handoff timeout: %+v", e)
		}
		if err := c.Live(); err == nil || !strings.Contains(err.Error(), "s/shardId-000000000000") {
			t.Errorf("it lives: %v", err)
		}
		time.Sleep(time.Hour)
		if n := calls.Load(); n != 1 {
			t.Errorf("%d handlers of one shard in one process", n)
		}
		if all := c.Shards(); len(all) == 0 || !slices.ContainsFunc(all, func(s weir.ShardStatus) bool { return s.Reason == health.Abandoned }) {
			t.Errorf("the status is %+v", all)
		}
		v, err := store.View(t.Context(), "app", "")
		if err != nil || !v.Leases[0].Position.IsZero() && v.Leases[0].Position != weir.Oldest {
			t.Errorf("the checkpoint is %v, %v", v.Leases[0].Position, err)
		}
		began := time.Now()
		cancel()
		err = <-done
		if took := time.Since(began); !errors.Is(err, weir.ErrAbandoned) || !strings.Contains(err.Error(), "s/shardId-000000000000") || took > 45*time.Second {
			t.Errorf("Run returned %v after %v", err, took)
		}
		if n := holders(t, store); len(n) > 0 {
			t.Errorf("leases are held by %v", n)
		}
		close(hang)
	})
}

// When the abandoned handler returns, the same process continues the shard.
func TestAnAbandonedHandlerThatReturnsLetsTheShardGoOn(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		s := newSink(t)
		hang := make(chan struct{})
		var calls atomic.Int32
		stop := start(t, srv.Client(), memstore.New(), weir.Options{Timing: weir.Timing{HandlerTimeout: time.Minute}}, func(ctx context.Context, b *weir.Batch) error {
			if calls.Add(1) == 1 {
				<-hang
			}
			return s.handle(ctx, b)
		})
		fill(srv, s, 5, 5)
		time.Sleep(10 * time.Minute)
		if calls.Load() != 1 {
			t.Errorf("%d calls", calls.Load())
		}
		close(hang)
		until(t, "everything handled", time.Minute, func() bool { return s.missing() == 0 })
		fill(srv, s, 5, 5)
		until(t, "what came later too", 10*time.Second, func() bool { return s.missing() == 0 })
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A stop takes limited time even if a handler ignores it. The error names the shard.
func TestAStopDoesNotWaitForEver(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		store, hang, entered := memstore.New(), make(chan struct{}), make(chan string, 1)
		var events told
		stop := start(t, srv.Client(), store, weir.Options{Timing: weir.Timing{StopTimeout: 10 * time.Second}, OnEvent: events.events()}, func(_ context.Context, b *weir.Batch) error {
			entered <- b.Shard
			<-hang
			return nil
		})
		srv.Put("s", "k", []byte("x"))
		shard := <-entered
		began := time.Now()
		err := stop()
		if took := time.Since(began); took < 17*time.Second || took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
		if !errors.Is(err, weir.ErrAbandoned) || !strings.Contains(err.Error(), "s/"+shard) {
			t.Errorf("Run returned %v", err)
		}
		if e := events.all(); len(e) != 1 || !e[0].Abandoned || e[0].Shard != shard {
			t.Errorf("%+v", e)
		}
		if n := holders(t, store); len(n) > 0 {
			t.Errorf("leases are held by %v", n)
		}
		close(hang)
	})
}

// A stop waits only for StopTimeout for a handler that has lost its lease before, whatever the
// handoff timeout is. This also holds for a stop that a handler requested.
func TestAStopDoesNotWaitForWhatWasLostBefore(t *testing.T) {
	for _, asked := range []bool{false, true} {
		bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
			conn, hang := &faultyStore{Store: memstore.New()}, make(chan struct{})
			var hung atomic.Bool
			fatal := errors.New("enough")
			stop := start(t, srv.Client(), conn, weir.Options{Timing: weir.Timing{HandoffTimeout: 10 * time.Hour, StopTimeout: time.Minute}}, func(context.Context, *weir.Batch) error {
				if hung.CompareAndSwap(false, true) {
					<-hang
				}
				return weir.Stop(fatal)
			})
			shard, _ := srv.Put("s", "k", []byte("x"))
			time.Sleep(10 * time.Second)
			conn.set(true, 0)
			time.Sleep(time.Minute)
			conn.set(false, 0)
			time.Sleep(10 * time.Second)
			began := time.Now()
			if asked {
				for key := ""; ; key += "x" {
					if at, _ := srv.Put("s", key+"k", []byte("x")); at != shard {
						break
					}
				}
				time.Sleep(5 * time.Second)
			}
			err := stop()
			if took := time.Since(began); !errors.Is(err, weir.ErrAbandoned) || errors.Is(err, fatal) != asked || took > 64*time.Second || took < time.Minute {
				t.Errorf("Run returned %v after %v", err, took)
			}
			close(hang)
		})
	}
}

// If a stop interrupts a batch, this is reported, and the next worker handles the batch again.
func TestAStopThatCutsAHandlerShortSaysSo(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		store, s := memstore.New(), newSink(t)
		var events told
		stop := start(t, srv.Client(), store, weir.Options{Timing: weir.Timing{StopTimeout: 10 * time.Second}, OnEvent: events.events()}, func(ctx context.Context, _ *weir.Batch) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		fill(srv, s, 1, 1)
		time.Sleep(5 * time.Second)
		began := time.Now()
		if err := stop(); err != nil || time.Since(began) > 12*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if e := events.all(); len(e) != 1 || !errors.Is(e[0].Err, weir.ErrStopping) || e[0].Reason != health.InHandler || began.Sub(e[0].Since) < time.Second {
			t.Errorf("%+v", e)
		}
		stop = start(t, srv.Client(), store, weir.Options{}, s.handle)
		until(t, "it is handled", 10*time.Second, func() bool { return s.missing() == 0 })
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestTheStoreKnowsWhatShardsBring(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		store := memstore.New()
		stop := start(t, srv.Client(), store, weir.Options{}, func(context.Context, *weir.Batch) error { return nil })
		busy := ""
		for range 300 {
			busy, _ = srv.Put("s", "k", make([]byte, 10_000))
			time.Sleep(time.Second)
		}
		v, err := store.View(t.Context(), "app", "")
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range v.Leases {
			want := lease.Load(0)
			if l.Shard == busy {
				want = lease.LoadOf(10_000)
			}
			if l.Load+1 < want || l.Load > want+1 {
				t.Errorf("%s brings %v, want about %v", l.Shard, l.Load, want)
			}
			bytes, exact := l.Throughput()
			if l.Shard == busy && (!exact || bytes < 9_800 || bytes > 10_200) {
				t.Errorf("%s handles %v bytes a second, exact %t", l.Shard, bytes, exact)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
