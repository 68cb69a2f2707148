package notify

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// collector records calls. It can block them.
type collector struct {
	mu   sync.Mutex
	got  []string
	hold chan struct{}
}

func (c *collector) call(name string) func() {
	return func() {
		if c.hold != nil {
			<-c.hold
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.got = append(c.got, name)
	}
}

func TestWhatArrivesWhenNobodyKeepsUp(t *testing.T) {
	for _, c := range []struct {
		name string
		add  func(q *Queue, c *collector)
		want []string
		lost Counts
	}{
		{"there is room", func(q *Queue, c *collector) {
			for i := range 3 {
				q.Add(State, "a", c.call(fmt.Sprint("a", i)))
			}
		}, []string{"first", "a0", "a1", "a2"}, Counts{}},
		{"details are dropped", func(q *Queue, c *collector) {
			for i := range 7 {
				q.Add(Detail, nil, c.call(fmt.Sprint(i)))
			}
		}, []string{"first", "0", "1", "2", "3"}, Counts{Dropped: 3}},
		{"of states the latest arrives, where it was added", func(q *Queue, c *collector) {
			for i := range 3 {
				q.Add(Detail, nil, c.call(fmt.Sprint(i)))
			}
			q.Add(State, "a", c.call("a taken"))
			q.Add(State, "b", c.call("b taken"))
			q.Add(State, "a", c.call("a ended"))
			q.Add(State, "a", c.call("a taken again"))
		}, []string{"first", "0", "1", "2", "b taken", "a taken again"}, Counts{Coalesced: 2}},
		{"important ones have more room", func(q *Queue, c *collector) {
			for i := range 20 {
				q.Add(Important, nil, c.call(fmt.Sprint(i)))
			}
		}, append([]string{"first"}, strings.Fields("0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15")...), Counts{Dropped: 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, got := New(4), &collector{hold: make(chan struct{})}
				go q.Run(func(err error) { t.Error(err) })
				q.Add(Detail, nil, got.call("first"))
				synctest.Wait() // the call is running
				c.add(q, got)
				close(got.hold)
				if !q.Close(time.Minute) {
					t.Error("not all was called")
				}
				if !slices.Equal(got.got, c.want) {
					t.Errorf("called %q, want %q", got.got, c.want)
				}
				if q.Counts() != c.lost {
					t.Errorf("%+v, want %+v", q.Counts(), c.lost)
				}
				if q.Add(State, "a", got.call("late")) {
					t.Error("a closed queue takes something in")
				}
			})
		})
	}
}

// The memory of a queue depends on the number of keys of State calls, and not on the number of
// these calls.
func TestStatesThatChangeForEver(t *testing.T) {
	q := New(4)
	for i := range 100_000 {
		q.Add(State, i%10, func() {})
	}
	if q.n > 14 || len(q.states) != 10 {
		t.Errorf("%d calls wait, of %d states", q.n, len(q.states))
	}
}

func TestACallThatPanicsOrNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, got := New(4), &collector{}
		var failed []string
		go q.Run(func(err error) { failed = append(failed, err.Error()) })
		q.Add(Detail, nil, func() { panic("oh") })
		q.Add(Detail, nil, got.call("next"))
		synctest.Wait()
		if len(failed) != 1 || !strings.Contains(failed[0], "oh") || len(got.got) != 1 || q.Counts().Panicked != 1 {
			t.Errorf("failed %q, called %q, %+v", failed, got.got, q.Counts())
		}
		hang := make(chan struct{})
		q.Add(Detail, nil, func() { <-hang })
		q.Add(Detail, nil, got.call("never"))
		began := time.Now()
		if q.Close(5*time.Second) || time.Since(began) != 5*time.Second {
			t.Errorf("closed after %v", time.Since(began))
		}
		close(hang)
		synctest.Wait()
		if len(got.got) != 1 {
			t.Errorf("called after the end: %q", got.got)
		}
	})
}

// blocking is a handler whose methods can block or panic.
type blocking struct {
	slog.Handler
	hold  chan struct{}
	panic bool
}

func (b *blocking) Enabled(ctx context.Context, l slog.Level) bool {
	if b.hold != nil {
		<-b.hold
	}
	return b.Handler.Enabled(ctx, l)
}

func (b *blocking) Handle(ctx context.Context, r slog.Record) error {
	if b.panic {
		panic("oh")
	}
	if b.hold != nil {
		<-b.hold
	}
	return b.Handler.Handle(ctx, r)
}

func (b *blocking) WithAttrs(attrs []slog.Attr) slog.Handler {
	derived := *b
	derived.Handler = b.Handler.WithAttrs(attrs)
	return &derived
}

func (b *blocking) WithGroup(name string) slog.Handler {
	derived := *b
	derived.Handler = b.Handler.WithGroup(name)
	return &derived
}

func TestTheLoggerIsNeverWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		level := new(slog.LevelVar)
		inner := &blocking{Handler: slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})}
		q := New(4)
		log := q.Logger(t.Context(), inner).With("app", "a").WithGroup("g")
		go q.Run(func(err error) { t.Error(err) })
		synctest.Wait() // the handler has returned the enabled levels
		inner.hold = make(chan struct{})
		made := time.Now()
		log.Info("one", "k", "v")
		log.Debug("off")
		time.Sleep(2 * time.Second)
		if out.Len() > 0 {
			t.Fatal("the handler is not held up")
		}
		level.Set(slog.LevelDebug)
		close(inner.hold)
		synctest.Wait()
		log.Info("two")
		synctest.Wait()
		log.Debug("three")
		if !q.Close(time.Minute) {
			t.Error("not all was logged")
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 3 || !strings.Contains(lines[0], "time="+made.Format("2006-01-02T15:04:05.000Z07:00")) ||
			!strings.HasSuffix(lines[0], "msg=one app=a g.k=v") || !strings.Contains(lines[2], "three") {
			t.Errorf("%q", lines)
		}
	})
	synctest.Test(t, func(t *testing.T) { // the first call already blocks
		var out strings.Builder
		inner := &blocking{Handler: slog.NewTextHandler(&out, nil), hold: make(chan struct{})}
		q := New(4)
		log := q.Logger(t.Context(), inner)
		go q.Run(func(err error) { t.Error(err) })
		log.Debug("off")
		log.Info("on")
		close(inner.hold)
		if !q.Close(time.Minute) || strings.Contains(out.String(), "off") || !strings.Contains(out.String(), "on") {
			t.Errorf("logged %q", out.String())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		q := New(4)
		log := q.Logger(t.Context(), &blocking{Handler: slog.DiscardHandler, panic: true})
		go q.Run(func(err error) { t.Error("a logger's panic is not told to the logger") })
		log.Error("oh")
		if !q.Close(time.Minute) {
			t.Error("the queue did not go on")
		}
	})
}
