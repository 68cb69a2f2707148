package failure

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Trials may run at the same time. The exception is a trial that must run alone: it waits for
// running trials, and later trials wait for it.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Turns
		var mu sync.Mutex
		var began []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			began = append(began, what)
		}
		try := func(ctx context.Context, name string, kind Turn, after, took time.Duration) {
			go func() {
				time.Sleep(after)
				if s.Take(ctx, kind) != nil {
					note(name + " left")
					return
				}
				note(name)
				time.Sleep(took)
				s.GiveBack()
			}()
		}
		after := func(d time.Duration, want ...string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(began) // the order of simultaneous starts is random
			if !slices.Equal(began, want) {
				t.Errorf("%q, want %q", began, want)
			}
			began = nil
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		try(t.Context(), "a", Beside, 0, 10*time.Second)
		try(t.Context(), "b", Beside, time.Second, 5*time.Second)
		try(t.Context(), "c", ByItself, 2*time.Second, 10*time.Second)
		try(t.Context(), "d", Beside, 3*time.Second, 20*time.Second)
		after(9500*time.Millisecond, "a", "b")
		after(time.Second, "c")
		after(9 * time.Second)
		after(time.Second, "d")
		try(ctx, "e", ByItself, 0, time.Second)
		try(t.Context(), "f", Beside, time.Second, time.Second)
		after(2 * time.Second)
		cancel(errors.New("the lease is wanted back")) // f then need not wait
		after(0, "e left", "f")
		after(time.Minute)
		if s.taken != 0 || s.waiting != 0 || s.single {
			t.Errorf("%+v", &s)
		}
	})
}

// looksBack is a context that records whether its error is requested while a mutex is held.
type looksBack struct {
	context.Context
	of   *Turns
	held bool
}

func (c *looksBack) Err() error {
	if c.of.mu.TryLock() {
		c.of.mu.Unlock()
	} else {
		c.held = true
	}
	return c.Context.Err()
}

// The context of a term takes the term's mutex, which has a higher rank than the mutex of the
// turns.
func TestTurnsAskTheirContextWithoutTheMutex(t *testing.T) {
	var s Turns
	if err := s.Take(t.Context(), ByItself); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	c := &looksBack{Context: ended, of: &s}
	if err := s.Take(c, Beside); !errors.Is(err, context.Canceled) {
		t.Errorf("take returned %v", err)
	}
	if c.held {
		t.Error("the context was asked with the mutex held")
	}
}
