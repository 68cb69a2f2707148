package behaviour

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// quiet is a logger for tests that provoke warnings.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// bubble runs f in virtual time. The embedded Kinesis has a stream "s" with the given number of
// shards.
func bubble(t *testing.T, shards int, f func(t *testing.T, srv *kinesistest.Server)) {
	t.Helper()
	bubbleWith(t, kinesistest.Config{}, shards, f)
}

func bubbleWith(t *testing.T, cfg kinesistest.Config, shards int, f func(t *testing.T, srv *kinesistest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg.InMemory = true
		srv, err := kinesistest.Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		if shards > 0 {
			srv.CreateStream("s", shards)
		}
		f(t, srv)
	})
}

// start starts a worker. The returned function stops the worker and returns the result of Run.
func start(t *testing.T, client weir.Kinesis, store lease.Store, opts weir.Options, h weir.HandlerFunc) (stop func() error) {
	t.Helper()
	if opts.App == "" {
		opts.App = "app"
	}
	if len(opts.Streams) == 0 {
		opts.Streams = []string{"s"}
	}
	if opts.Logger == nil {
		opts.Logger = quiet
	}
	c, err := weir.New(client, store, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, h) }()
	stopped := false
	return func() error {
		cancel()
		if stopped {
			return nil
		}
		stopped = true
		return <-done
	}
}

// until waits, in virtual time, until f returns true.
func until(t *testing.T, what string, bound time.Duration, f func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !f() {
		if time.Since(began) > bound {
			t.Fatalf("%s: not within %v", what, bound)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(began)
}

func fill(srv *kinesistest.Server, s *sink, keys, each int) {
	for range each {
		for k := range keys {
			key := fmt.Sprintf("key-%d", k)
			srv.Put("s", key, s.next(key))
		}
	}
}

func TestEveryRecordIsHandledInOrder(t *testing.T) {
	bubble(t, 4, func(t *testing.T, srv *kinesistest.Server) {
		s := newSink(t)
		fill(srv, s, 20, 10)
		stop := start(t, srv.Client(), memstore.New(), weir.Options{}, s.handle)
		until(t, "everything handled", 10*time.Second, func() bool { return s.missing() == 0 })
		fill(srv, s, 20, 10)
		until(t, "what came later handled", 5*time.Second, func() bool { return s.missing() == 0 })
		if err := stop(); err != nil {
			t.Error(err)
		}
		s.judge()
		if s.again != 0 {
			t.Errorf("%d records were handled twice though nothing happened", s.again)
		}
	})
}

func TestARestartGoesOnWhereTheLastRunStopped(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *kinesistest.Server) {
		s, store := newSink(t), memstore.New()
		for range 3 {
			fill(srv, s, 10, 5)
			stop := start(t, srv.Client(), store, weir.Options{}, s.handle)
			until(t, "everything handled", 10*time.Second, func() bool { return s.missing() == 0 })
			if err := stop(); err != nil {
				t.Error(err)
			}
		}
		s.judge()
		if s.again != 0 {
			t.Errorf("%d records were handled again after orderly stops", s.again)
		}
	})
}

func TestStartPositions(t *testing.T) {
	for name, test := range map[string]struct {
		start func(middle time.Time) weir.Position
		want  string
	}{
		"the zero position starts with the oldest": {func(time.Time) weir.Position { return weir.Position{} }, "early late then"},
		"oldest":                          {func(time.Time) weir.Position { return weir.Oldest }, "early late then"},
		"a time":                          {func(middle time.Time) weir.Position { return weir.At(middle) }, "late then"},
		"a time before the oldest record": {func(middle time.Time) weir.Position { return weir.At(middle.Add(-100 * time.Hour)) }, "early late then"},
		"latest":                          {func(time.Time) weir.Position { return weir.Latest }, "then"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
				srv.Put("s", "a", []byte("early"))
				time.Sleep(10 * time.Second)
				start0 := test.start(time.Now())
				time.Sleep(10 * time.Second)
				srv.Put("s", "a", []byte("late"))
				time.Sleep(10 * time.Second)
				var got []string // no lock needed: one key and one shard have one goroutine at a time
				stop := start(t, srv.Client(), memstore.New(), weir.Options{Start: start0}, func(_ context.Context, b *weir.Batch) error {
					for _, r := range b.Records {
						got = append(got, string(r.Data))
					}
					return nil
				})
				time.Sleep(3 * time.Second)
				srv.Put("s", "a", []byte("then"))
				time.Sleep(3 * time.Second)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if strings.Join(got, " ") != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
			})
		})
	}
}

// When the application first sees a stream, it fixes the position of Latest. Records that arrive
// later are handled, even if no worker has read yet or no worker runs.
func TestLatestIsPinnedAtFirstSight(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		srv.Put("s", "old", []byte("old 1"))
		time.Sleep(5 * time.Second)
		s, store := newSink(t), memstore.New()
		refuse := errors.New("not now")
		stop := start(t, srv.Client(), store, weir.Options{Start: weir.Latest},
			func(context.Context, *weir.Batch) error { return refuse })
		time.Sleep(3 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		fill(srv, s, 5, 3)
		time.Sleep(time.Hour)
		stop = start(t, srv.Client(), store, weir.Options{Start: weir.Latest}, s.handle)
		until(t, "everything handled", 5*time.Second, func() bool { return s.missing() == 0 })
		if err := stop(); err != nil {
			t.Error(err)
		}
		s.judge()
	})
}

func TestAFailingHandlerIsRetriedAndNothingIsSkipped(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		s := newSink(t)
		fill(srv, s, 3, 5)
		var calls, failures int
		var pauses []time.Duration
		events := event.On(func(_ context.Context, e event.HandlerFailed) {
			failures++
			pauses = append(pauses, e.Next)
			if e.Attempt != failures {
				t.Errorf("failure %d says it is attempt %d", failures, e.Attempt)
			}
		})
		stop := start(t, srv.Client(), memstore.New(), weir.Options{OnEvent: events}, func(ctx context.Context, b *weir.Batch) error {
			calls++
			switch {
			case calls <= 3:
				return errors.New("the database is down")
			case calls <= 6:
				panic("a bug")
			}
			return s.handle(ctx, b)
		})
		until(t, "everything handled", time.Minute, func() bool { return s.missing() == 0 })
		if err := stop(); err != nil {
			t.Error(err)
		}
		s.judge()
		if failures != 6 {
			t.Errorf("%d failures were reported, want 6", failures)
		}
		for i, p := range pauses {
			full := 100 * time.Millisecond << i
			if p < full/2 || p > full {
				t.Errorf("pause %d is %v, want between half of and all of %v", i+1, p, full)
			}
		}
	})
}

func TestCheckpointInsideABatch(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		s, store := newSink(t), memstore.New()
		fill(srv, s, 1, 10)
		var first []int
		c, err := weir.New(srv.Client(), store, weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		crash := errors.New("crash")
		err = c.Run(t.Context(), weir.HandlerFunc(func(ctx context.Context, b *weir.Batch) error {
			first = append(first, len(b.Records))
			if err := b.Checkpoint(ctx, b.Records[len(b.Records)/2-1]); err != nil {
				t.Error(err)
			}
			view, err := store.View(ctx, "app", "")
			if err != nil {
				return err
			}
			if at, want := view.Leases[0].Position, b.Records[len(b.Records)/2-1].Position(); at != want {
				t.Errorf("after Checkpoint returned the store has %s, want %s", at, want)
			}
			if len(first) == 2 {
				return weir.Stop(crash)
			}
			return errors.New("again, please: the rest")
		}))
		if !errors.Is(err, crash) {
			t.Errorf("Run returned %v, want what Stop was given", err)
		}
		if len(first) != 2 || first[0] != 10 || first[1] != 5 {
			t.Errorf("the batches had %v records, want 10 and then the 5 after the checkpoint", first)
		}
		var second []string
		stop := start(t, srv.Client(), store, weir.Options{}, func(_ context.Context, b *weir.Batch) error {
			for _, r := range b.Records {
				second = append(second, string(r.Data))
			}
			return nil
		})
		time.Sleep(3 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if len(second) != 3 || second[0] != "key-0 8" {
			t.Errorf("after the restart %v was handled, want the three after the second checkpoint", second)
		}
	})
}

// With reused buffers, a checkpoint must not refer to the buffers, because it outlives the handler.
func TestReusedBuffersDoNotReachCheckpoints(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		s, store := newSink(t), memstore.New()
		stop := start(t, srv.Client(), store, weir.Options{ReuseBuffers: true, Batching: weir.Batching{MaxRecords: 7}}, func(ctx context.Context, b *weir.Batch) error {
			if len(b.Records) > 3 {
				if err := b.Checkpoint(ctx, b.Records[2]); err != nil {
					return err
				}
			}
			return s.handle(ctx, b)
		})
		for range 20 {
			fill(srv, s, 5, 4)
			until(t, "everything handled", time.Minute, func() bool { return s.missing() == 0 })
			time.Sleep(1500 * time.Millisecond) // a heartbeat saves the checkpoint
			view, err := store.View(t.Context(), "app", "")
			if err != nil {
				t.Fatal(err)
			}
			all := srv.Records("s")
			if at, want := view.Leases[0].Position.SequenceNumber(), all[len(all)-1].SequenceNumber; at != want {
				t.Fatalf("the checkpoint is %q, the last record is %q", at, want)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		s.judge()
	})
}

func TestStopWithNilEndsRunWithoutError(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		srv.Put("s", "k", []byte("k 1"))
		c, err := weir.New(srv.Client(), memstore.New(), weir.Options{App: "app", Streams: []string{"s"}, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Run(t.Context(), weir.HandlerFunc(func(context.Context, *weir.Batch) error { return weir.Stop(nil) })); err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestStopDuringAStopIsStillReturned(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		srv.Put("s", "k", []byte("k 1"))
		entered := make(chan struct{})
		broken := errors.New("the disk is full")
		stop := start(t, srv.Client(), memstore.New(), weir.Options{}, func(context.Context, *weir.Batch) error {
			close(entered)
			time.Sleep(3 * time.Second) // the worker's context ends in the meantime
			return weir.Stop(broken)
		})
		<-entered
		if err := stop(); !errors.Is(err, broken) {
			t.Errorf("Run returned %v, want what Stop was given", err)
		}
	})
}

func TestRunSaysThatAStreamDoesNotExist(t *testing.T) {
	bubble(t, 0, func(t *testing.T, srv *kinesistest.Server) {
		c, err := weir.New(srv.Client(), memstore.New(), weir.Options{App: "app", Streams: []string{"nowhere"}, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Run(t.Context(), weir.HandlerFunc(func(context.Context, *weir.Batch) error { return nil }))
		if text := fmt.Sprint(err); !errors.Is(err, weir.ErrStreamNotFound) || strings.Count(text, "does not exist") != 1 || !strings.Contains(text, "nowhere") {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestAHandlerThatWillNotStopIsToldAfterTheTimeout(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		srv.Put("s", "k", []byte("k 1"))
		entered := make(chan struct{}, 1)
		var cause error
		stop := start(t, srv.Client(), memstore.New(), weir.Options{Timing: weir.Timing{StopTimeout: 20 * time.Second}}, func(ctx context.Context, _ *weir.Batch) error {
			entered <- struct{}{}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return cause
		})
		<-entered
		began := time.Now()
		if err := stop(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < 19*time.Second || took > 25*time.Second {
			t.Errorf("Run returned after %v, want about the StopTimeout of 20 s", took)
		}
		if !errors.Is(cause, weir.ErrStopping) {
			t.Errorf("the handler was told %v", cause)
		}
	})
}

func TestSeveralStreamsByNameAndARN(t *testing.T) {
	bubble(t, 0, func(t *testing.T, srv *kinesistest.Server) {
		for _, name := range []string{"x", "y", "z"} {
			srv.CreateStream(name, 2)
			srv.Put(name, "k", []byte(name))
		}
		seen := make(chan string, 10)
		stop := start(t, srv.Client(), memstore.New(), weir.Options{Streams: []string{"x", srv.StreamARN("y"), "z", "x"}},
			func(_ context.Context, b *weir.Batch) error {
				for _, r := range b.Records {
					seen <- b.Stream + "=" + string(r.Data)
				}
				return nil
			})
		time.Sleep(5 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		close(seen)
		got := map[string]bool{}
		for s := range seen {
			got[s] = true
		}
		if len(got) != 3 || !got["x=x"] || !got["y=y"] || !got["z=z"] {
			t.Errorf("handled %v", got)
		}
	})
}

func TestNewNamesEveryProblemAtOnce(t *testing.T) {
	_, err := weir.New(nil, nil, weir.Options{
		App: "no spaces", Streams: []string{"arn:aws:sqs:eu-west-1:123456789012:queue", "bad name"}, Batching: weir.Batching{MaxRecords: 20000},
		Polling: weir.Polling{IdleInterval: time.Millisecond}, Timing: weir.Timing{
			HeartbeatInterval: time.Second,
			FailoverAfter:     time.Second,
			StallAfter:        time.Second,
			HandlerTimeout:    -1,
		}, Weight: -1, MaxLeases: -1,
		Start: func() weir.Position { p, _ := shard.After("17"); return p }(),
	})
	for _, want := range []string{
		"client is nil", "store is nil", "Options.App", "not the ARN of a stream", `stream name "bad name"`, "Options.Batching.MaxRecords 20000",
		"Options.Polling.IdleInterval", "Options.Timing.FailoverAfter", "Options.Weight", "Options.MaxLeases", "Options.Start",
		"Options.Timing.StallAfter", "Options.Timing.HandlerTimeout",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %q: %v", want, err)
		}
	}
	client := kinesis.New(kinesis.Options{Region: "eu-west-1", HTTPClient: http.DefaultClient})
	if _, err := weir.New(client, memstore.New(), weir.Options{App: "a", Streams: []string{"arn:aws:kinesis:us-east-1:123456789012:stream/s"}}); err == nil ||
		!strings.Contains(err.Error(), "region us-east-1") {
		t.Errorf("an ARN of another region: %v", err)
	}
	if _, err := weir.New(client, memstore.New(), weir.Options{App: "a"}); err == nil || !strings.Contains(err.Error(), "Options.Streams") {
		t.Errorf("no stream: %v", err)
	}
}
