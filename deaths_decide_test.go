package weir

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestWhatDeathsSay(t *testing.T) {
	for _, c := range []struct {
		name              string
		d                 lease.Deaths
		after             int
		suspicious, kills bool
	}{
		{"nobody died", lease.Deaths{}, 2, false, false},
		{"one did", lease.Deaths{Count: 1}, 2, false, false},
		{"as many as it takes", lease.Deaths{Count: 2}, 2, true, false},
		{"it is never asked", lease.Deaths{Count: 9, Tried: 2, Alone: 1, Record: shard.Oldest}, -1, false, true},
		{"records are being tried", lease.Deaths{Record: shard.Oldest}, 2, true, false},
		{"beside others", lease.Deaths{Count: 3, Tried: 1, Record: shard.Oldest}, 2, true, false},
		{"alone", lease.Deaths{Count: 3, Tried: 1, Alone: 1, Record: shard.Oldest}, 2, true, true},
		{"alone, and nobody before", lease.Deaths{Count: 1, Tried: 1, Alone: 1, Record: shard.Oldest}, 2, true, false},
	} {
		if s, k := suspicious(c.d, c.after), kills(c.d, c.after); s != c.suspicious || k != c.kills {
			t.Errorf("%s: suspicious %t, kills %t", c.name, s, k)
		}
	}
}

// TestWhoseDeathsTheyAre checks that the deaths of a record are kept while earlier records are read
// again for a sink, and that they are not held against the record after it.
func TestWhoseDeathsTheyAre(t *testing.T) {
	at := func(seq string) Position {
		p, err := shard.After(seq)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	noted := lease.Deaths{At: at("10"), Count: 3, Tried: 2, Alone: 1, Record: at("20")}
	innocent := noted
	innocent.Tried, innocent.Alone = 0, 0
	unexplained := noted
	unexplained.Count = 6
	anew := lease.Deaths{At: at("10"), Count: 2, Record: at("20")}
	untried := lease.Deaths{At: at("10"), Count: 3, Record: at("20")}
	besideOthers := noted
	besideOthers.Alone = 0
	for _, c := range []struct {
		name   string
		d      lease.Deaths
		record Position
		clears bool
		then   lease.Deaths
	}{
		{"the record itself", noted, at("20"), false, noted},
		{"one before it", noted, at("15"), true, noted},
		{"one before the checkpoint", noted, at("5"), true, noted},
		{"one after it, which has expired", noted, at("30"), false, innocent},
		{"one before it, but more have died than that explains", unexplained, at("15"), false, anew},
		{"one before it, at which workers died beside others", besideOthers, at("15"), true, besideOthers},
		{"one after it, at which workers died beside others", besideOthers, at("30"), false, innocent},
		{"no worker died of the last one that was tried", untried, at("15"), false, untried},
		{"no record was tried", lease.Deaths{Count: 2}, at("15"), false, lease.Deaths{Count: 2}},
	} {
		tr := trial{deaths: c.d}
		if clears := tr.clears(c.record, 2); clears != c.clears || tr.deaths != c.then {
			t.Errorf("%s: clears %t, then %v, want %t, %v", c.name, clears, tr.deaths, c.clears, c.then)
		}
	}
}

func TestWhenAKillerIsGivenUp(t *testing.T) {
	g := GiveUp{Patience: 2 * time.Minute, PerMinute: 60}
	for _, c := range []struct {
		name  string
		held  time.Duration
		other bool
		room  float64
		want  consequence
	}{
		{"something else works", 0, true, 60, giveUp},
		{"nothing else does", 119 * time.Second, false, 60, waitForOthers},
		{"nothing else does, for long", 2 * time.Minute, false, 60, giveUp},
		{"too many a minute", time.Hour, true, 0.5, waitForRoom},
	} {
		if got := g.judgeKiller(c.held, c.other, c.room); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Trials go on beside each other, but for one that has to be by itself: it waits for those that are
// there, and those that come wait for it.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s turns
		var mu sync.Mutex
		var began []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			began = append(began, what)
		}
		try := func(ctx context.Context, name string, kind turn, after, took time.Duration) {
			go func() {
				time.Sleep(after)
				if s.take(ctx, kind) != nil {
					note(name + " left")
					return
				}
				note(name)
				time.Sleep(took)
				s.giveBack()
			}()
		}
		after := func(d time.Duration, want ...string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(began) // those of one time have no order
			if !slices.Equal(began, want) {
				t.Errorf("%q, want %q", began, want)
			}
			began = nil
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		try(t.Context(), "a", beside, 0, 10*time.Second)
		try(t.Context(), "b", beside, time.Second, 5*time.Second)
		try(t.Context(), "c", byItself, 2*time.Second, 10*time.Second)
		try(t.Context(), "d", beside, 3*time.Second, 20*time.Second)
		after(9500*time.Millisecond, "a", "b")
		after(time.Second, "c")
		after(9 * time.Second)
		after(time.Second, "d")
		try(ctx, "e", byItself, 0, time.Second)
		try(t.Context(), "f", beside, time.Second, time.Second)
		after(2 * time.Second)
		cancel(errors.New("the lease is wanted back")) // so f need not wait for it
		after(0, "e left", "f")
		after(time.Minute)
		if s.taken != 0 || s.waiting != 0 || s.single {
			t.Errorf("%+v", &s)
		}
	})
}

// looksBack is a context that notes whether it is asked for its error with a mutex held.
type looksBack struct {
	context.Context
	of   *turns
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

// The context of a term takes the term's mutex, which ranks above that of the turns.
func TestTurnsAskTheirContextWithoutTheMutex(t *testing.T) {
	var s turns
	if err := s.take(t.Context(), byItself); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	c := &looksBack{Context: ended, of: &s}
	if err := s.take(c, beside); !errors.Is(err, context.Canceled) {
		t.Errorf("take returned %v", err)
	}
	if c.held {
		t.Error("the context was asked with the mutex held")
	}
}
