package keyed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/proof/pooled"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// host is user code that takes a second for each record.
type host struct {
	does func(c *Call, r *source.Record) Step // returns the result for a record; may be nil

	mu     lock.Mutex[lock.Puller]
	began  []string
	now    int
	most   int
	failed error
	woken  int
}

func (h *host) Begin(c *Call, records []source.Record) {
	if c.Of == nil {
		c.Of = new(int)
	}
}

func (h *host) Step(c *Call, now time.Time) Step {
	p, some := c.Delivery.Next(false)
	if !some {
		c.Delivery.Complete()
		return Step{After: now, Over: true}
	}
	h.mu.Lock()
	var names []string
	for _, r := range p.Records {
		names = append(names, string(r.Data))
	}
	h.began = append(h.began, strings.Join(names, " "))
	h.now++
	h.most = max(h.most, h.now)
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.now--
	}()
	for i := range p.Records {
		r := &p.Records[i]
		time.Sleep(time.Second)
		if h.does != nil {
			if s := h.does(c, r); s != (Step{}) {
				s.After = time.Now()
				return s
			}
		}
		c.NoteDone(p.Use, c.Delivery.MarkDone(p.Use, r.SequenceNumber, r.Done, nil).Done)
	}
	c.Delivery.Complete()
	return Step{After: time.Now(), Over: true}
}

func (h *host) Fail(err error) { h.mu.Lock(); defer h.mu.Unlock(); h.failed = err }
func (h *host) Wake()          { h.mu.Lock(); defer h.mu.Unlock(); h.woken++ }

// calls returns the names of the records of each call so far, sorted, and clears them.
func (h *host) calls() string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.Sort(h.began)
	all := strings.Join(h.began, ", ")
	h.began = nil
	return all
}

// run returns a run of records with names of key and place: "a1", "b2", and so on.
func run(from int, keys string) (all []source.Record) {
	for i, key := range strings.Fields(keys) {
		n := from + i
		all = append(all, source.Record{SequenceNumber: fmt.Sprint(1000 + n), Done: shard.Whole, Key: key, Data: fmt.Append(nil, key, n)})
	}
	return all
}

func at(t *testing.T, n int) shard.Position {
	t.Helper()
	if n == 0 {
		return shard.Position{}
	}
	p, err := shard.After(fmt.Sprint(1000 + n))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// started returns a runner with the given numbers of keys and slots.
func started(h *host, keys, slots int) *Runner {
	return New(Config{
		Host: h, Keys: keys, Records: 10, Limits: Limits{Records: 100, Bytes: 1 << 20}, Slots: NewSlots(slots),
		Budget: memory.New(1 << 24), From: &source.Origin{Stream: "s", Shard: "1"}, Goexit: errors.New("exited"),
	})
}

// add adds records. There must be room for them.
func add(t *testing.T, r *Runner, run []source.Record) {
	t.Helper()
	if fits, err := r.Fits(t.Context(), len(run), len(run)); !fits || err != nil {
		t.Fatalf("%t, %v", fits, err)
	}
	r.Add(run, len(run), 0, shard.Position{}, nil)
}

func TestKeysAreCalledInParallelAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(host)
		r := started(h, 10, 10)
		add(t, r, run(1, "a b a c b a"))
		if got := h.calls(); got != "a1, b2, c4" && got != "a1 a3 a6, b2 b5, c4" {
			t.Errorf("%q were begun", got)
		}
		if drained, err := r.Drained(t.Context()); !drained || err != nil {
			t.Errorf("%t, %v", drained, err)
		}
		if r.Mark() != at(t, 6) || h.most != 3 {
			t.Errorf("the mark is %v, %d calls at a time", r.Mark(), h.most)
		}
		if err := r.End(); err != nil || r.Close(0, 100) != "" {
			t.Error(err, "or something is done beyond the mark")
		}
	})
}

// With n slots, at most n+1 calls run at the same time: n calls have a slot, and one handles the
// oldest record. There is at most one call for each key.
func TestSlotsBoundCalls(t *testing.T) {
	for _, c := range []struct{ keys, slots, most int }{{10, 1, 2}, {10, 3, 4}, {2, 9, 2}, {10, 9, 6}} {
		synctest.Test(t, func(t *testing.T) {
			h := new(host)
			r := started(h, c.keys, c.slots)
			add(t, r, run(1, "a b c d e f"))
			if drained, err := r.Drained(t.Context()); !drained || err != nil {
				t.Errorf("%t, %v", drained, err)
			}
			if h.most != c.most {
				t.Errorf("%d keys, %d slots: %d calls at a time, want %d", c.keys, c.slots, h.most, c.most)
			}
			if err := r.End(); err != nil || r.Slots.free != c.slots {
				t.Errorf("%v, %d slots are left", err, r.Slots.free)
			}
			r.Close(0, 100)
		})
	}
}

// A key whose handler fails pauses, and the mark does not pass it. Close returns the records after
// the mark that are done.
func TestAKeyThatFailsHoldsTheMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		h := &host{does: func(c *Call, r *source.Record) Step {
			if string(r.Data) == "a2" {
				c.Enter(health.HandlerFailed, 1, failed)
				return Step{Pause: time.Minute}
			}
			return Step{}
		}}
		r := started(h, 10, 10)
		add(t, r, run(1, "b a b"))
		time.Sleep(30 * time.Second)
		if k := r.Look(); k.Keys != 1 || k.Calls != 0 || k.Records != 2 || k.State != health.HandlerFailed || k.Attempt != 1 || !errors.Is(k.Err, failed) {
			t.Errorf("%+v", k)
		}
		if r.Mark() != at(t, 1) {
			t.Errorf("the mark is %v", r.Mark())
		}
		h.calls()
		time.Sleep(32 * time.Second)
		if got := h.calls(); got != "a2" {
			t.Errorf("%q was begun after the pause", got)
		}
		if err := r.End(); err != nil {
			t.Error(err)
		}
		beyond := r.Close(3, 100)
		if k := ParseBeyond(beyond, 3); k.Done(&run(2, "a")[0]) || !k.Done(&run(3, "b")[0]) {
			t.Errorf("%q does not say what is done", beyond)
		}
	})
}

// When a runner ends, it begins nothing new, and it reports its end to the loop.
func TestWhatEndsARunner(t *testing.T) {
	stop := errors.New("stop")
	for _, c := range []struct {
		name  string
		does  func(ctx context.CancelFunc) func(c *Call, r *source.Record) Step
		fits  error
		want  error
		fails error
	}{
		{"the user's code ends Run", func(context.CancelFunc) func(*Call, *source.Record) Step {
			return func(_ *Call, r *source.Record) Step {
				if r.Key == "a" {
					return Step{Ends: true, Stop: stop}
				}
				return Step{}
			}
		}, stop, stop, stop},
		{"the term is over", func(context.CancelFunc) func(*Call, *source.Record) Step {
			return func(_ *Call, r *source.Record) Step {
				if r.Key == "a" {
					return Step{Ends: true}
				}
				return Step{}
			}
		}, nil, nil, nil},
		{"the lease is wanted back", func(end context.CancelFunc) func(*Call, *source.Record) Step {
			return func(*Call, *source.Record) Step { end(); return Step{} }
		}, nil, nil, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			h := &host{does: c.does(cancel)}
			r := started(h, 10, 10)
			add(t, r, run(1, "a b"))
			if fits, err := r.Fits(ctx, 1000, 10); fits || !errors.Is(err, c.fits) || c.fits == nil && err != nil {
				t.Errorf("%s: %t, %v", c.name, fits, err)
			}
			if err := r.End(); !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			if !errors.Is(h.failed, c.fails) || c.fails == nil && h.failed != nil {
				t.Errorf("%s: %v ends Run", c.name, h.failed)
			}
			r.Close(0, 100)
			cancel()
		})
	}
}

// The loop of a shard may end while keys are being handled. It is woken when all records are done.
func TestTheLoopIsWokenWhenAllIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(host)
		r := started(h, 10, 10)
		add(t, r, run(1, "a b"))
		if done, stops := r.Park(); done || stops {
			t.Errorf("%t, %t", done, stops)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if done, stops := r.Park(); h.woken != 1 || !done || stops {
			t.Errorf("woken %d times; %t, %t", h.woken, done, stops)
		}
		if err := r.End(); err != nil {
			t.Error(err)
		}
		r.Close(0, 100)
	})
}

// A call that waits for older records releases its slot for them.
func TestACallThatSavesGivesItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var saved sync.Map
		h := new(host)
		h.does = func(c *Call, r *source.Record) Step {
			if r.Key != "c" {
				return Step{}
			}
			err := c.Runner().Save(t.Context(), c, c.use, at(t, 3), func(ctx context.Context, p shard.Position) error {
				for c.Runner().Mark().Compare(at(t, 2)) < 0 && ctx.Err() == nil {
					time.Sleep(time.Second)
				}
				return context.Cause(ctx)
			})
			saved.Store(string(r.Data), err)
			return Step{}
		}
		r := started(h, 3, 1)
		add(t, r, run(1, "a a c b b"))
		if drained, err := r.Drained(t.Context()); !drained || err != nil {
			t.Errorf("%t, %v", drained, err)
		}
		if err, some := saved.Load("c3"); !some || err != nil {
			t.Errorf("%v", err)
		}
		if err := r.End(); err != nil || r.Slots.free != 1 {
			t.Errorf("%v, %d slots", err, r.Slots.free)
		}
		r.Close(0, 100)
	})
}

func TestLimitsOfASpan(t *testing.T) {
	l := Limits{Records: 100, Bytes: 1000, Age: time.Minute}
	for _, c := range []struct {
		name             string
		length, bytes, n int
		age              time.Duration
		want             bool
	}{
		{"as many as it may have", 100, 1000, 10, time.Second, true},
		{"more records", 101, 10, 10, time.Second, false},
		{"more bytes", 10, 1001, 5, time.Second, false},
		{"the oldest is too old", 10, 10, 5, time.Minute, false},
		{"there is nothing else", 1000, 10_000, 1000, time.Hour, true},
	} {
		if got := l.room(c.length, c.bytes, c.n, c.age); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// A reused call equals a new one.
func TestACallIsUsedAgain(t *testing.T) {
	lane := func() *Lane { return &Lane{Records: run(1, "a")} }
	r := new(Runner)
	c, fresh := &Call{runner: r}, &Call{runner: r}
	pooled.Fill(c, "runner", "Of", "From", "use")
	mine := lane()
	c.begin(mine, time.Second)
	fresh.begin(lane(), time.Second)
	fresh.lane = mine
	for _, d := range pooled.Differences(c, fresh, "use", "runner", "Of") {
		t.Errorf("%s is not reset", d)
	}
	if mine.call != c || c.use != 1 {
		t.Error("the lane is another call's")
	}
	if c.Status != (Status{}) || c.Delivery.Behind != time.Second {
		t.Errorf("%+v", c.Status)
	}
	c.runs(mono.Now())
	if c.State != health.InHandler {
		t.Errorf("it is %q", c.State)
	}
}
