package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lambda"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// adder is a function that collects payloads in the state of a window. At the end of a window it
// stores them under the window's start and shard.
type adder struct {
	t       *testing.T
	mu      sync.Mutex
	results map[string][]string
	early   int
	calls   int
	fails   func(call int) error
	alters  func(state []string) string // changes the answer; an empty result leaves it unchanged
}

type windowEvent struct {
	Window  struct{ Start, End time.Time }
	State   struct{ Names []string }
	ShardID string
	Final   bool `json:"isFinalInvokeForWindow"`
	Early   bool `json:"isWindowTerminatedEarly"`
}

func (a *adder) invoke(_ context.Context, b *weir.Batch, event []byte) ([]byte, error) {
	var e windowEvent
	if err := json.Unmarshal(event, &e); err != nil {
		a.t.Error(err)
	}
	got := payloads(a.t, event)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls++; a.fails != nil {
		if err := a.fails(a.calls); err != nil {
			return nil, err
		}
	}
	if e.ShardID != b.Shard || (e.Final && len(got) > 0) || (!e.Final && len(got) == 0) {
		a.t.Errorf("of shard %s, and %q: %.300s", b.Shard, got, event)
	}
	state := append(e.State.Names, got...)
	if e.Final {
		id := fmt.Sprint(e.Window.Start.Unix(), " ", e.ShardID)
		if e.Early {
			a.early++
			id += fmt.Sprint(" early ", state[0])
		}
		a.results[id] = state
		return nil, nil
	}
	if a.alters != nil {
		if answer := a.alters(state); answer != "" {
			return []byte(answer), nil
		}
	}
	return json.Marshal(map[string]any{"state": map[string]any{"names": state}})
}

// judge checks that each record is in exactly one result, and that the window of that result
// contains its arrival time.
func (a *adder) judge(arrived map[string]time.Time, size time.Duration) {
	a.t.Helper()
	for id, names := range a.results {
		var start int64
		_, _ = fmt.Sscan(id, &start)
		for _, name := range names {
			at, some := arrived[name]
			if !some {
				a.t.Errorf("%s is in two results", name)
			}
			if delete(arrived, name); at.Truncate(size).Unix() != start {
				a.t.Errorf("%s arrived at %v, and is in the window %s", name, at, id)
			}
		}
	}
	if len(arrived) > 0 {
		a.t.Errorf("in no result: %v", arrived)
	}
}

func (a *adder) run(size time.Duration) func(context.Context, *weir.Consumer) error {
	h := lambda.Handler{Invoke: a.invoke, Source: func(string) lambda.Source { return source }, Report: true}
	shards, err := h.Windows(size)
	if err != nil {
		a.t.Fatal(err)
	}
	return func(ctx context.Context, c *weir.Consumer) error { return c.RunPull(ctx, shards) }
}

// mortal is a store that simulates the death of a worker. After the death, heartbeats stop and
// progress is not saved.
type mortal struct {
	lease.Store
	dead atomic.Bool
}

func (s *mortal) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	if s.dead.Load() {
		return lease.Orders{}, errors.New("the network is gone")
	}
	return s.Store.Heartbeat(ctx, app, r)
}

// Workers start, die and stop, and shards are split. Calls fail, some of them after they took
// effect. Each record must be in the final state of its window once.
func TestWindowsOfFunctionsSurviveWhatHappensToWorkers(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *kinesistest.Server) {
				var mu sync.Mutex
				source := rand.New(rand.NewPCG(seed, 7))
				roll := func(n int) int {
					mu.Lock()
					defer mu.Unlock()
					return source.IntN(n)
				}
				a := &adder{t: t, results: map[string][]string{}, fails: func(int) error {
					if roll(4) == 0 {
						return &lambda.FunctionError{Type: "E", Message: "no"}
					}
					return nil
				}}
				const size = 10 * time.Second
				store, arrived := memstore.New(), map[string]time.Time{}
				type process struct {
					store *mortal
					stop  func()
				}
				var live, dead []process
				begin := func() {
					own := &mortal{Store: store}
					live = append(live, process{own, worker(t, srv, own, a.run(size), weir.Options{Batching: weir.Batching{MaxRecords: 1 + roll(20)}, ReuseBuffers: roll(2) == 0})})
				}
				begin()
				for i := range 300 {
					name := fmt.Sprint("record-", i)
					arrived[name] = time.Now()
					srv.Put("s", fmt.Sprint(roll(9)), []byte(name))
					time.Sleep(time.Duration(roll(600)) * time.Millisecond)
					switch roll(50) {
					case 0:
						if len(live) < 3 {
							begin()
						}
					case 1:
						live[0].stop()
						live = live[1:]
					case 2:
						live[0].store.dead.Store(true)
						dead, live = append(dead, live[0]), live[1:]
					case 3:
						if open := srv.OpenShards("s"); len(open) < 4 {
							srv.Split("s", open[roll(len(open))])
						}
					}
					if len(live) == 0 {
						begin()
					}
				}
				time.Sleep(3 * time.Minute)
				for _, p := range append(live, dead...) {
					p.store.dead.Store(false) // the worker can now stop
					p.stop()
				}
				a.judge(arrived, size)
				t.Logf("%d results of %d calls, %d workers died", len(a.results), a.calls, len(dead))
			})
		})
	}
}

// A window whose state is too large ends early, and its state is delivered completely. The window
// continues with an empty state.
func TestAStateThatIsTooLargeEndsItsWindowEarly(t *testing.T) {
	bubble(t, func(t *testing.T, srv *kinesistest.Server) {
		arrived := map[string]time.Time{}
		a := &adder{t: t, results: map[string][]string{}, alters: func(state []string) string {
			if len(state) < 5 {
				return ""
			}
			all, _ := json.Marshal(state)
			return fmt.Sprintf(`{"state":{"names":%s,"more":%q}}`, all, strings.Repeat("x", lambda.MaxState))
		}}
		stop := worker(t, srv, memstore.New(), a.run(time.Minute), weir.Options{Batching: weir.Batching{MaxRecords: 1}})
		for i := range 12 {
			name := fmt.Sprint(i)
			arrived[name] = time.Now()
			srv.Put("s", "k", []byte(name))
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		stop()
		if a.early != 2 || len(a.results) != 3 {
			t.Errorf("%d early, %v", a.early, a.results)
		}
		a.judge(arrived, time.Minute)
	})
}

// An answer may report that only some of the records are done. Its state must cover exactly these
// records.
func TestAWindowGoesOnWhereAnAnswerSays(t *testing.T) {
	bubble(t, func(t *testing.T, srv *kinesistest.Server) {
		var ids []string
		for _, name := range []string{"a", "b", "c"} {
			_, id := srv.Put("s", "k", []byte(name))
			ids = append(ids, id)
		}
		var got []string
		h := lambda.Handler{Report: true, Source: func(string) lambda.Source { return source }, Invoke: func(_ context.Context, _ *weir.Batch, event []byte) ([]byte, error) {
			var e struct {
				State map[string]int
				Final bool `json:"isFinalInvokeForWindow"`
			}
			if err := json.Unmarshal(event, &e); err != nil {
				t.Error(err)
			}
			got = append(got, strings.Join(payloads(t, event), "")+fmt.Sprint(e.State["n"], e.Final))
			switch len(got) {
			case 1:
				return fmt.Appendf(nil, `{"state":{"n":1},"batchItemFailures":[{"itemIdentifier":%q}]}`, ids[1]), nil
			case 2: // no record is done, so the state is ignored
				return fmt.Appendf(nil, `{"state":{"n":7},"batchItemFailures":[{"itemIdentifier":%q}]}`, ids[1]), nil
			case 3: // the answer has no state
				return []byte(`{}`), nil
			}
			return []byte(`{"state":{"n":3}}`), nil
		}}
		shards, err := h.Windows(10 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		stop := worker(t, srv, memstore.New(), func(ctx context.Context, c *weir.Consumer) error { return c.RunPull(ctx, shards) }, weir.Options{})
		time.Sleep(time.Minute)
		stop()
		if want := []string{"abc0 false", "bc1 false", "bc1 false", "bc1 false", "3 true"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// If a function keeps failing, its window is started again. weir reports this like any other
// failure.
func TestAWindowThatFailsIsBegunAgain(t *testing.T) {
	bubble(t, func(t *testing.T, srv *kinesistest.Server) {
		arrived, began := map[string]time.Time{}, time.Now()
		for i := range 6 {
			arrived[fmt.Sprint(i)] = began
			srv.Put("s", "k", fmt.Append(nil, i))
		}
		a := &adder{t: t, results: map[string][]string{}, fails: func(call int) error {
			if call > 2 && time.Since(began) < 20*time.Second {
				return errors.New("the database is down")
			}
			return nil
		}}
		failed, retried := 0, 0
		h := lambda.Handler{Invoke: a.invoke, Source: func(string) lambda.Source { return source }, Retries: func(_ *weir.Batch, err error, attempt int, _ time.Duration) {
			if retried++; attempt < 1 || attempt > 4 || err == nil {
				t.Errorf("attempt %d, %v", attempt, err)
			}
		}}
		shards, err := h.Windows(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		o := weir.Options{Batching: weir.Batching{MaxRecords: 2}}
		o.OnEvent = event.Join(o.OnEvent, event.On(func(_ context.Context, e event.HandlerFailed) {
			if failed++; !strings.Contains(e.Err.Error(), "the database is down") {
				t.Error(e.Err)
			}
		}))
		stop := worker(t, srv, memstore.New(), func(ctx context.Context, c *weir.Consumer) error { return c.RunPull(ctx, shards) }, o)
		time.Sleep(2 * time.Minute)
		stop()
		if a.judge(arrived, time.Minute); failed == 0 || retried < 4*failed {
			t.Errorf("%d failures, %d retries", failed, retried)
		}
	})
}

func TestWindowsOfFunctionsThatMakeNoSense(t *testing.T) {
	for _, size := range []time.Duration{0, time.Second - 1, 1500 * time.Millisecond, 15*time.Minute + time.Second} {
		if _, err := (lambda.Handler{}).Windows(size); err == nil {
			t.Errorf("windows of %v", size)
		}
	}
	if _, err := (lambda.Handler{MaxAge: time.Minute}).Windows(time.Minute); err == nil {
		t.Error("windows with an age")
	}
}
