package window_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/window"
)

// results stores the results of all workers by ID, like a sink.
type results struct {
	t  *testing.T
	mu sync.Mutex
	of map[string]window.Result[[]string]
	n  int // number of deliveries
}

func (s *results) emit(_ context.Context, r window.Results[[]string]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range r.Windows {
		s.n++
		was, some := s.of[w.ID]
		if w.Why == window.ShardEnded { // whether the reason is ShardEnded depends on when the end was seen
			was.Why = w.Why
		}
		if some && fmt.Sprint(was) != fmt.Sprint(w) {
			s.t.Errorf("%s was %v, and is %v", w.ID, was, w)
		}
		s.of[w.ID] = w
	}
	return nil
}

// judge checks that each record is in exactly one result, and that the window of that result
// contains its arrival time. It returns the number of results that ended early.
func (s *results) judge(arrived map[string]time.Time) (early int) {
	for id, w := range s.of {
		if w.Records != len(w.State) {
			s.t.Errorf("%s has %d of %d records", id, len(w.State), w.Records)
		}
		if w.Why != window.Passed {
			early++
		}
		for _, name := range w.State {
			at := arrived[name]
			if at.IsZero() {
				s.t.Errorf("%s is in two results", name)
			}
			if delete(arrived, name); at.Before(w.Start) || !at.Before(w.End) {
				s.t.Errorf("%s arrived at %v, and is in the window from %v", name, at, w.Start)
			}
		}
	}
	if len(arrived) > 0 {
		s.t.Errorf("in no result: %v", arrived)
	}
	return early
}

func add(state []string, r weir.Record) ([]string, error) {
	return append(state, string(r.Data)), nil
}

// worker starts a worker. The returned function stops it.
func worker(t *testing.T, srv *kinesistest.Server, store lease.Store, c window.Config[[]string], change ...func(*weir.Options)) (stop func()) {
	t.Helper()
	h, err := window.PullHandler(c)
	if err != nil {
		t.Fatal(err)
	}
	o := weir.Options{App: "app", Streams: []string{"s"}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Retry: weir.Retry{MinBackoff: 100 * time.Millisecond, MaxBackoff: time.Second}}
	for _, f := range change {
		f(&o)
	}
	w, err := weir.New(srv.Client(), store, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.RunPull(ctx, h) }()
	return func() {
		cancel()
		// A worker cannot save its progress if its session was ended.
		if err := <-done; err != nil && !errors.Is(err, weir.ErrNotSaved) {
			t.Error(err)
		}
	}
}

func bubble(t *testing.T, f func(t *testing.T, srv *kinesistest.Server)) {
	synctest.Test(t, func(t *testing.T) {
		srv, err := kinesistest.Start(kinesistest.Config{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		srv.CreateStream("s", 1)
		f(t, srv)
	})
}

// Workers start and stop while windows are open, calls fail and the shard is split. Each record
// must be in exactly one result, for the window of its time. A repeated result must be the same.
func TestAResultIsAFunctionOfItsRecords(t *testing.T) {
	for _, keyed := range []bool{false, true} {
		t.Run(fmt.Sprint(keyed), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *kinesistest.Server) {
				got, store := &results{t: t, of: map[string]window.Result[[]string]{}}, memstore.New()
				var made atomic.Int64
				c := window.Config[[]string]{Size: 10 * time.Second, ByKey: keyed, Add: add, Emit: func(ctx context.Context, r window.Results[[]string]) error {
					calls := made.Add(1)
					if calls%4 == 0 {
						return errors.New("oh")
					}
					err := got.emit(ctx, r)
					if calls%7 == 0 { // the call took effect and still fails
						return errors.Join(err, errors.New("oh"))
					}
					return err
				}}
				stop := worker(t, srv, store, c)
				arrived := map[string]time.Time{}
				for i := range 200 {
					name := fmt.Sprint("record-", i)
					arrived[name] = time.Now()
					srv.Put("s", fmt.Sprint("key-", i%7), []byte(name))
					time.Sleep(700 * time.Millisecond)
					switch i {
					case 40, 90, 150:
						stop()
						stop = worker(t, srv, store, c)
					case 120:
						srv.Split("s", srv.OpenShards("s")[0])
					}
				}
				time.Sleep(time.Minute) // the clock ends the last window
				stop()
				early := got.judge(arrived)
				if got.n <= len(got.of) || early == 0 {
					t.Errorf("%d results, handed over %d times, %d of them early: the test shows little", len(got.of), got.n, early)
				}
			})
		})
	}
}

// Open windows hold the checkpoint, and end early at their limit. Later records of the same window
// are in a separate result.
func TestWhatIsOpenIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, srv *kinesistest.Server) {
		got, store := &results{t: t, of: map[string]window.Result[[]string]{}}, memstore.New()
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
		stop := worker(t, srv, store, window.Config[[]string]{Size: time.Hour, Add: add, Emit: got.emit, MaxRecords: 10, MaxBytes: 1000})
		for range 25 {
			srv.Put("s", "key", []byte("x"))
		}
		srv.Put("s", "key", []byte(strings.Repeat("x", 999)))
		time.Sleep(time.Minute)
		got.mu.Lock()
		var sizes []int
		for _, w := range got.of {
			if w.Why != window.Full {
				t.Errorf("%s: %v", w.ID, w.Why)
			}
			sizes = append(sizes, w.Records)
		}
		if len(sizes) != 3 || sizes[0]+sizes[1]+sizes[2] != 25 {
			t.Errorf("results of %v records, and one is open", sizes)
		}
		got.mu.Unlock()
		stop()
	})
}

// While an open window holds a checkpoint, the worker reports it.
func TestAHeldCheckpointIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, srv *kinesistest.Server) {
		got, store := &results{t: t, of: map[string]window.Result[[]string]{}}, memstore.New()
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
		h, err := window.PullHandler(window.Config[[]string]{Size: 10 * time.Minute, Add: add, Emit: got.emit})
		if err != nil {
			t.Fatal(err)
		}
		c, err := weir.New(srv.Client(), store, weir.Options{App: "app", Streams: []string{"s"}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.RunPull(ctx, h) }()
		told := func() (held string, troubles int) {
			view, err := store.View(t.Context(), "app", "")
			if err != nil {
				t.Fatal(err)
			}
			for _, tr := range view.Workers[0].Troubles {
				if tr.State == lease.OnPurpose && tr.Why == "by an open window" && tr.Shard == c.Shards()[0].Shard {
					troubles++
				}
			}
			return c.Shards()[0].Held, troubles
		}
		time.Sleep(time.Minute)
		if held, troubles := told(); held != "" || troubles > 0 {
			t.Errorf("before anything came: %q, %d", held, troubles)
		}
		began := time.Now()
		srv.Put("s", "key", []byte("x"))
		time.Sleep(2 * time.Minute)
		if held, troubles := told(); held != "by an open window" || troubles != 1 {
			t.Errorf("while a window is open: %q, %d", held, troubles)
		}
		if s := c.Shards()[0]; s.HeldSince.Before(began) || s.HeldSince.After(began.Add(10*time.Second)) {
			t.Errorf("held since %v, open since %v", s.HeldSince, began)
		}
		time.Sleep(10 * time.Minute)
		if held, troubles := told(); held != "" || troubles > 0 {
			t.Errorf("after the window: %q, %d", held, troubles)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestWhatIsConfiguredIsChecked(t *testing.T) {
	good := window.Config[int]{Size: time.Minute, Add: func(n int, _ weir.Record) (int, error) { return n + 1, nil },
		Emit: func(context.Context, window.Results[int]) error { return nil }}
	if _, err := window.PullHandler(good); err != nil {
		t.Error(err)
	}
	for field, wrong := range map[string]func(*window.Config[int]){
		"Size": func(c *window.Config[int]) { c.Size = time.Millisecond }, "Add": func(c *window.Config[int]) { c.Add = nil },
		"Emit": func(c *window.Config[int]) { c.Emit = nil }, "MaxRecords": func(c *window.Config[int]) { c.MaxRecords = -1 },
		"MaxBytes": func(c *window.Config[int]) { c.MaxBytes = -1 }, "Allowance": func(c *window.Config[int]) { c.Allowance = -1 },
		"MaxAge": func(c *window.Config[int]) { c.MaxAge = time.Millisecond }, "Ahead": func(c *window.Config[int]) { c.Time, c.Ahead = noTime, -1 },
		"Lateness": func(c *window.Config[int]) { c.Time, c.Lateness = noTime, -1 }, "Time": func(c *window.Config[int]) { c.Lateness = time.Second },
	} {
		c := good
		wrong(&c)
		if _, err := window.PullHandler(c); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func noTime(weir.Record) (time.Time, error) { return time.Time{}, nil }
