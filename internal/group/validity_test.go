package group

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// moment has the memory layout of time.Time. A test needs a time whose two clocks disagree, as
// after a machine was suspended, and there is no other way to make one. skewed verifies the layout.
type moment struct {
	wall uint64
	ext  int64 // the monotonic reading
	loc  *time.Location
}

// skewed returns the time at with its two clocks moved by separate amounts.
func skewed(t *testing.T, at time.Time, wall, monotonic time.Duration) time.Time {
	t.Helper()
	then := at.Add(wall)
	(*moment)(unsafe.Pointer(&then)).ext += int64(monotonic - wall)
	if then.Sub(at) != monotonic || then.Round(0).Sub(at.Round(0)) != wall {
		t.Fatalf("package time keeps times in another way: %v and %v apart, want %v and %v",
			then.Sub(at), then.Round(0).Sub(at.Round(0)), monotonic, wall)
	}
	return then
}

func TestValidityEndsByEitherClock(t *testing.T) {
	t.Parallel()
	const limit = 900 * time.Millisecond
	for _, c := range []struct {
		name            string
		wall, monotonic time.Duration // since the heartbeat was sent
		want            bool
	}{
		{"at once", 0, 0, true},
		{"just before the end", limit - 1, limit - 1, true},
		{"at the end", limit, limit, false},
		{"only the monotonic clock is at the end", limit - 1, limit, false},
		{"only the wall clock is at the end", limit, limit - 1, false},
		{"the machine was suspended for an hour", time.Hour, time.Millisecond, false},
		{"the wall clock was set back, in time", -time.Hour, limit - 1, true},
		{"the wall clock was set back, too late", -time.Hour, limit, false},
		{"the wall clock was set forward by little", limit / 2, time.Millisecond, true},
	} {
		sent := time.Now()
		if got := within(sent, skewed(t, sent, c.wall, c.monotonic), limit); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// When a suspended machine wakes up, most of a timer's duration still remains. Check does not rely
// on the timer.
func TestCheckNoticesThatTheMachineWasSuspended(t *testing.T) {
	t.Parallel()
	v := newValidity(time.Hour) // times in a bubble have only one clock
	defer v.end(nil)
	v.extend(time.Now())
	term := newTerm(lease.Lease{}, v, func() {})
	if err := term.Check(time.Now()); err != nil {
		t.Fatalf("before: %v", err)
	}
	sent := skewed(t, *v.sent.Load(), -time.Hour, -time.Millisecond)
	v.sent.Store(&sent)
	if term.Context().Err() != nil {
		t.Fatal("the timer has come already")
	}
	if err := term.Check(time.Now()); !errors.Is(err, ErrLeaseLost) || !errors.Is(context.Cause(term.Context()), ErrLeaseLost) {
		t.Errorf("Check says %v, Context ends with %v", err, context.Cause(term.Context()))
	}
	if v.extend(skewed(t, time.Now(), -time.Hour, -time.Millisecond)) || v.context(nil).Err() == nil {
		t.Error("an answer to what was sent before counts")
	}
}

// Timers may be late or may never fire. Leases still expire on time, because Check ends the
// validity.
func TestCheckEndsValidityWhoseTimerIsLate(t *testing.T) {
	for name, late := range map[string]func(*time.Timer){
		"by a minute": func(timer *time.Timer) { timer.Reset(time.Minute) },
		"for good":    func(timer *time.Timer) { timer.Stop() },
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newParking()
			p.poke = func() {}
			late(p.validity.timer)
			go p.run(p.read)
			saved := make(chan error, 1)
			go func() { saved <- p.Save(context.Background(), shard.End) }()
			ctx := p.Context()
			derived, cancel := context.WithCancel(ctx)
			defer cancel()
			time.Sleep(p.validity.limit - 1)
			synctest.Wait()
			if err := p.Check(time.Now()); err != nil {
				t.Fatalf("%s: Check says %v before the end", name, err)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if ctx.Err() != nil || p.gone.Load() {
				t.Fatalf("%s: the timer is not late", name)
			}
			if err := p.Check(time.Now()); !errors.Is(err, ErrLeaseLost) {
				t.Errorf("%s: Check says %v at the end", name, err)
			}
			synctest.Wait()
			for what, ctx := range map[string]context.Context{"Context": ctx, "what was made from it": derived, "Validity": p.Validity(), "Reading": p.Reading()} {
				if !errors.Is(context.Cause(ctx), ErrLeaseLost) {
					t.Errorf("%s: after Check %s has ended with %v", name, what, context.Cause(ctx))
				}
			}
			if !p.gone.Load() {
				t.Errorf("%s: after Check the reader is still parked", name)
			}
			select {
			case err := <-saved:
				if !errors.Is(err, ErrLeaseLost) {
					t.Errorf("%s: Save says %v", name, err)
				}
			default:
				t.Errorf("%s: after Check who saves still waits", name)
			}
			p.validity.end(nil)
		})
	}
}

// Leases are valid for nine tenths of the failover time, counted from just before the heartbeat
// was sent. Nothing else extends that time.
func TestWhatAnAnswerProves(t *testing.T) {
	const failover, limit = 10 * time.Second, 9 * time.Second
	type answer struct{ sent, came time.Duration }
	for _, c := range []struct {
		name    string
		answers []answer
		valid   []bool
		ends    time.Duration // 0 if no period exists at the end
	}{
		{"nothing", nil, nil, 0},
		{"one", []answer{{0, 0}}, []bool{true}, limit},
		{"one that took a while", []answer{{0, 4 * time.Second}}, []bool{true}, limit},
		{"one that came in the last moment", []answer{{0, limit - 1}}, []bool{true}, limit},
		{"one that took too long", []answer{{0, limit}}, []bool{false}, 0},
		{"two", []answer{{0, 0}, {8 * time.Second, 8 * time.Second}}, []bool{true, true}, 8*time.Second + limit},
		{"the second took a while", []answer{{0, 0}, {4 * time.Second, 8 * time.Second}}, []bool{true, true}, 4*time.Second + limit},
		{"the second came after the end of the first", []answer{{0, 0}, {4 * time.Second, 10 * time.Second}}, []bool{true, true}, 4*time.Second + limit},
		{"the second took too long", []answer{{0, 0}, {time.Second, 12 * time.Second}}, []bool{true, false}, 0},
		{"an older one came late", []answer{{2 * time.Second, 2 * time.Second}, {0, 10 * time.Second}}, []bool{true, true}, 2*time.Second + limit},
		{"again after the end", []answer{{0, 0}, {20 * time.Second, 21 * time.Second}}, []bool{true, true}, 20*time.Second + limit},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			v := newValidity(failover)
			if cause := context.Cause(v.context(nil)); !errors.Is(cause, ErrLeaseLost) {
				t.Errorf("%s: before the first answer: %v", c.name, cause)
			}
			for i, a := range c.answers {
				time.Sleep(time.Until(began.Add(a.came)))
				synctest.Wait()
				if got := v.extend(began.Add(a.sent)); got != c.valid[i] || got != (v.context(nil).Err() == nil) {
					t.Errorf("%s: answer %d: %t, and the context says %v", c.name, i+1, got, v.context(nil).Err())
				}
			}
			ctx := v.context(nil)
			if (ctx.Err() == nil) != (c.ends > 0) {
				t.Errorf("%s: at last %v", c.name, ctx.Err())
			}
			if c.ends > 0 {
				time.Sleep(time.Until(began.Add(c.ends - 1)))
				synctest.Wait()
				if ctx.Err() != nil {
					t.Errorf("%s: it ends before %v", c.name, c.ends)
				}
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				if !errors.Is(context.Cause(ctx), ErrLeaseLost) {
					t.Errorf("%s: at %v it has ended with %v", c.name, c.ends, context.Cause(ctx))
				}
			}
			v.end(nil)
		})
	}
}
