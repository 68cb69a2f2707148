package weirtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/weirtest"
)

// judged is a testing.TB for a test that should fail. It keeps the output of the test.
type judged struct {
	testing.TB
	said []string
	ends []func()
}

func (j *judged) Helper()          {}
func (j *judged) Cleanup(f func()) { j.ends = append(j.ends, f) }
func (j *judged) Errorf(format string, args ...any) {
	j.said = append(j.said, fmt.Sprintf(format, args...))
}
func (j *judged) Fatalf(format string, args ...any) {
	j.Errorf(format, args...)
	panic(j)
}

// run runs a test until the test fails or returns.
func (j *judged) run(test func(tb testing.TB)) {
	defer func() {
		if p := recover(); p != nil && p != any(j) {
			panic(p)
		}
	}()
	test(j)
}

// end runs the cleanup functions of the test and returns all its failures.
func (j *judged) end() string {
	for _, f := range slices.Backward(j.ends) {
		f()
	}
	return strings.Join(j.said, "\n")
}

func TestWhatFailsSaysHowFarItWas(t *testing.T) {
	for name, tt := range map[string]struct {
		test func(tb testing.TB, srv *kinesistest.Server)
		want string
	}{
		"it takes too long": {func(tb testing.TB, srv *kinesistest.Server) {
			w := weirtest.Start(tb, srv.Client(), memstore.New(), weir.Options{Streams: []string{"s"}, App: "a"}, weir.HandlerFunc(nothing))
			w.Until(weirtest.Handled(3, w), weirtest.When("cows fly", func() bool { return false }))
		}, "1m0s have passed, and the test waits for: 3 handled records (2 are); cows fly"},
		"it ends": {func(tb testing.TB, srv *kinesistest.Server) {
			w := weirtest.Start(tb, srv.Client(), memstore.New(), weir.Options{Streams: []string{"s"}, App: "a"},
				weir.HandlerFunc(func(context.Context, *weir.Batch) error { return weir.Stop(errors.New("no paper")) }))
			w.Until(weirtest.Handled(3, w))
		}, "it has ended with error no paper, while the test waits for: 3 handled records (0 are)"},
		"it is wrong": {func(tb testing.TB, srv *kinesistest.Server) {
			weirtest.Start(tb, srv.Client(), memstore.New(), weir.Options{Streams: []string{"s"}}, weir.HandlerFunc(nothing))
		}, "Options.App"},
		"it is stopped and fails": {func(tb testing.TB, _ *kinesistest.Server) {
			r := weirtest.Go(tb, func(ctx context.Context) error { <-ctx.Done(); return errors.New("no paper") })
			r.Stop()
			r.Stop() // does not report the failure again
		}, "weirtest: no paper"},
		"it does not stop": {func(tb testing.TB, _ *kinesistest.Server) {
			weirtest.Go(tb, func(context.Context) error { time.Sleep(90 * time.Second); return nil })
		}, "it goes on 1m0s after its context has ended"},
		"all is well": {func(tb testing.TB, srv *kinesistest.Server) {
			w := weirtest.Start(tb, srv.Client(), memstore.New(), weir.Options{Streams: []string{"s"}, App: "a"}, weir.HandlerFunc(nothing))
			w.Until(weirtest.Handled(2, w))
			w.Until(weirtest.AtTip(srv, "s", w))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
				srv.CreateStream("s", 1)
				srv.Put("s", "k", []byte("1"))
				srv.Put("s", "k", []byte("2"))
				j := &judged{TB: t}
				j.run(func(tb testing.TB) { tt.test(tb, srv) })
				said := j.end()
				if !strings.Contains(said, tt.want) || (tt.want == "") != (said == "") || strings.Count(said, "\n") > 0 {
					t.Errorf("it says %q", said)
				}
				time.Sleep(time.Minute) // the abandoned goroutine ends
			})
		})
	}
}

func nothing(context.Context, *weir.Batch) error { return nil }

// A killed worker handles no further batch and saves nothing more. Its shards are taken over after
// FailoverAfter, like those of a dead process.
func TestKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		srv.CreateStream("s", 1)
		store := memstore.New()
		options := weir.Options{Streams: []string{"s"}, App: "a"}
		var first, second []string
		var worker *weirtest.Worker
		worker = weirtest.Start(t, srv.Client(), store, options, weir.RecordFunc(func(_ context.Context, r weir.Record) error {
			first = append(first, string(r.Data))
			if string(r.Data) == "2" {
				worker.Kill() // while a record is being handled
			}
			return nil
		}))
		srv.Put("s", "k", []byte("1"))
		worker.Until(weirtest.AtTip(srv, "s", worker))
		time.Sleep(3 * time.Second) // a heartbeat saves that the record is handled
		srv.Put("s", "k", []byte("2"))
		srv.Put("s", "k", []byte("3"))
		time.Sleep(3 * time.Second)

		began := time.Now()
		other := weirtest.Start(t, srv.Client(), store, options, weir.RecordFunc(func(_ context.Context, r weir.Record) error {
			second = append(second, string(r.Data))
			return nil
		}))
		other.Until(weirtest.AtTip(srv, "s", other))
		if waited := time.Since(began); waited < time.Second || waited > 10*time.Second {
			t.Errorf("it waited for %v", waited)
		}
		other.Stop()
		worker.Stop()
		if got := fmt.Sprint(first, second); got != "[1 2 3] [2 3]" && got != "[1 2] [2 3]" {
			t.Errorf("handled %s", got)
		}
	})
}

// AtTip waits for records that arrive later, for every start position of the consumer.
func TestAtTipWaitsForWhatComesLater(t *testing.T) {
	for name, start := range map[string]func() weir.Position{
		"oldest": func() weir.Position { return weir.Oldest },
		"latest": func() weir.Position { return weir.Latest },
		"a time": func() weir.Position { return weir.At(time.Now()) },
	} {
		for _, before := range []int{0, 1} {
			t.Run(fmt.Sprint(name, before), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
					srv.CreateStream("s", 1)
					for range before {
						srv.Put("s", "k", []byte("before"))
					}
					time.Sleep(5 * time.Second)
					var last string
					options := weir.Options{Streams: []string{"s"}, App: "a", Start: start()}
					worker := weirtest.Start(t, srv.Client(), memstore.New(), options, weir.RecordFunc(func(_ context.Context, r weir.Record) error {
						last = string(r.Data)
						return nil
					}))
					worker.Until(weirtest.AtTip(srv, "s", worker))
					srv.Put("s", "k", []byte("later"))
					worker.Until(weirtest.AtTip(srv, "s", worker))
					worker.Stop()
					if last != "later" {
						t.Errorf("the last record handled is %q", last)
					}
				})
			})
		}
	}
}
