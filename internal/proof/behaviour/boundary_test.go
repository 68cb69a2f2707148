package behaviour

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// This file tests misuse by handlers, and unusual uses that are allowed.

func TestPoisonCatchesAHandlerThatWritesIntoData(t *testing.T) {
	t.Setenv("WEIR_POISON", "1")
	write := func(b *weir.Batch) { b.Records[len(b.Records)-1].Data[0]++ }
	for what, h := range map[string]func(before **weir.Batch, ctx context.Context, b *weir.Batch) error{
		"and succeeds": func(_ **weir.Batch, _ context.Context, b *weir.Batch) error { write(b); return nil },
		"and fails":    func(_ **weir.Batch, _ context.Context, b *weir.Batch) error { write(b); return errOnceMore },
		"and panics":   func(_ **weir.Batch, _ context.Context, b *weir.Batch) error { write(b); panic("after writing") },
		"when it is done": func(_ **weir.Batch, ctx context.Context, b *weir.Batch) error {
			err := b.Checkpoint(ctx, b.Records[len(b.Records)-1])
			write(b)
			return err
		},
		"of the attempt before": func(before **weir.Batch, _ context.Context, b *weir.Batch) error {
			if *before == nil {
				*before = b
				return errOnceMore
			}
			write(*before)
			return nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			inEachReading(t, func(t *testing.T, srv *kinesistest.Server, opts weir.Options, _ []string) {
				if opts.ReuseBuffers && strings.HasPrefix(what, "of the attempt") {
					return
				}
				opts.App, opts.Streams, opts.Logger = "app", []string{"s"}, quiet
				c, err := weir.New(srv.Client(), memstore.New(), opts)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var before *weir.Batch
				err = c.Run(ctx, weir.HandlerFunc(func(ctx context.Context, b *weir.Batch) error { return h(&before, ctx, b) }))
				if err == nil || !strings.Contains(err.Error(), "wrote into the Data") || !strings.Contains(err.Error(), "s/shardId-") {
					t.Errorf("Run returned %v", err)
				}
			})
		})
	}
}

func TestPoisonLetsHandlersDoWhatTheyMay(t *testing.T) {
	t.Setenv("WEIR_POISON", "1")
	for habit, do := range habits {
		t.Run(habit, func(t *testing.T) {
			inEachReading(t, func(t *testing.T, srv *kinesistest.Server, opts weir.Options, want []string) {
				var got []string
				calls := 0
				stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
					now := data(b.Records)
					do(b)
					if calls++; calls%2 == 1 {
						return errOnceMore
					}
					got = append(got, now...)
					return nil
				})
				time.Sleep(30 * time.Second)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("handled %q, want %q", got, want)
				}
			})
		})
	}
}

// A handler may end its goroutine, as t.FailNow does. Run then ends with an error that names the
// cause. Records that the handler has finished are saved.
func TestAHandlerThatEndsItsGoroutineEndsRun(t *testing.T) {
	inEachReading(t, func(t *testing.T, srv *kinesistest.Server, opts weir.Options, want []string) {
		store := memstore.New()
		opts.App, opts.Streams, opts.Logger = "app", []string{"s"}, quiet
		c, err := weir.New(srv.Client(), store, opts)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := c.Run(t.Context(), weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
			got = append(got, data(b.Records[:2])...)
			if err := b.Done(b.Records[1]); err != nil {
				t.Error(err)
			}
			runtime.Goexit()
			return nil
		})); err == nil || !strings.Contains(err.Error(), "ended its goroutine") {
			t.Errorf("Run returned %v", err)
		}
		if got = append(got, handled(t, srv, store, weir.Options{})...); !slices.Equal(got, want) {
			t.Errorf("handled %q, want %q", got, want)
		}
	})
}

// A Run that ends because of an error waits only for StopTimeout for handlers that ignore their
// contexts.
func TestARunThatEndsByItselfDoesNotWaitForHandlersForLong(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		fill(srv, newSink(t), 20, 1)
		c, err := weir.New(srv.Client(), memstore.New(), weir.Options{
			App: "app", Streams: []string{"s"}, Logger: quiet, Timing: weir.Timing{StopTimeout: 2 * time.Second, HandoffTimeout: 10 * time.Minute},
		})
		if err != nil {
			t.Fatal(err)
		}
		goOn, began := make(chan struct{}), time.Now()
		err = c.Run(t.Context(), weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
			if b.Shard == "shardId-000000000000" {
				<-goOn
				return nil
			}
			time.Sleep(time.Second)
			runtime.Goexit()
			return nil
		}))
		if !errors.Is(err, weir.ErrAbandoned) || !strings.Contains(err.Error(), "ended its goroutine") {
			t.Errorf("Run returned %v", err)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("Run returned after %v", took)
		}
		close(goOn)
		synctest.Wait()
	})
}

// A handler may call methods of its consumer, even Run.
func TestAHandlerMayCallItsConsumer(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		want := putSome(t, srv, false)
		store := memstore.New()
		c, err := weir.New(srv.Client(), store, weir.Options{App: "app", Streams: []string{"s"}, Batching: weir.Batching{MaxRecords: 10}, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		calls := 0
		if err := c.Run(ctx, weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
			calls++
			if s := c.Shards(); len(s) != 1 || s[0].Reason != health.InHandler {
				t.Errorf("Shards says %+v", s)
			}
			_ = c.HealthHandler()
			inner, end := context.WithTimeout(ctx, 20*time.Second)
			defer end()
			if err := c.Run(inner, weir.HandlerFunc(func(context.Context, *weir.Batch) error {
				t.Error("a worker whose lease is another's handles something")
				return nil
			})); err != nil {
				t.Error(err)
			}
			if got = append(got, data(b.Records)...); len(got) == len(want) {
				cancel()
			}
			return nil
		})); err != nil {
			t.Error(err)
		}
		if !slices.Equal(got, want) || calls != 3 {
			t.Errorf("handled %q in %d calls, want %q", got, calls, want)
		}
	})
}

// A handler that never returns delays the end of Run only by StopTimeout. The error names the shard
// of that handler. If the handler continues later, its calls have no effect.
func TestWhatAnAbandonedHandlerDoesLaterChangesNothing(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		want := putSome(t, srv, false)
		store := memstore.New()
		goOn, returned := make(chan struct{}), make(chan struct{})
		opts := weir.Options{Timing: weir.Timing{StopTimeout: 10 * time.Second}}
		stop := start(t, srv.Client(), store, opts, func(_ context.Context, b *weir.Batch) error {
			defer close(returned)
			if err := b.Done(b.Records[2]); err != nil {
				t.Error(err)
			}
			<-goOn
			if err := b.Done(b.Records[7]); !errors.Is(err, weir.ErrLeaseLost) {
				t.Errorf("Done says %v", err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := b.Checkpoint(ctx, b.Records[8]); err == nil {
				t.Error("Checkpoint says that it is saved")
			}
			return nil
		})
		time.Sleep(5 * time.Second)
		began := time.Now()
		if err := stop(); !errors.Is(err, weir.ErrAbandoned) || !strings.Contains(err.Error(), "s/shardId-000000000000") {
			t.Errorf("Run returned %v", err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("Run returned after %v", took)
		}
		at := position(t, store)
		close(goOn)
		<-returned
		if now := position(t, store); now != at {
			t.Errorf("the checkpoint moved from %v to %v", at, now)
		}
		if got := handled(t, srv, store, weir.Options{}); !slices.Equal(got, want[3:]) {
			t.Errorf("the next worker handled %q, want %q", got, want[3:])
		}
	})
}
