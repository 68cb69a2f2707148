package wire

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A life is a context. It ends with its caller's context or at its deadline, with the right cause,
// whether Done or only Err is used.
func TestALifeEnds(t *testing.T) {
	t.Parallel()
	slow, gone := errors.New("slow"), errors.New("gone")
	for _, waited := range []bool{false, true} {
		for _, window := range []int{0, 1} {
			for _, canceled := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), t, "value"))
					defer cancel(nil)
					l := live(ctx, &Request{}, 10*time.Second, slow)
					l.window = window
					defer l.end()
					if waited {
						_ = l.Done()
					}
					if at, ok := l.Deadline(); !ok || time.Until(at) != 10*time.Second {
						t.Errorf("the deadline is in %v", time.Until(at))
					}
					time.Sleep(9 * time.Second)
					want := slow
					if canceled {
						cancel(gone)
						want = gone
					} else if l.Err() != nil || l.over(nil) {
						t.Errorf("ended after 9 s: %v", l.Err())
					} else {
						time.Sleep(time.Second)
						synctest.Wait()
					}
					if err := l.Err(); err == nil || l.cause() != want || !l.over(errors.New("any")) { //nolint:errorlint // the very one
						t.Errorf("waited %v, window %d: it ended with %v, %v, want %v", waited, window, err, l.cause(), want)
					}
					select {
					case <-l.Done():
					case <-time.After(time.Second):
						t.Error("who waits for the end waits in vain")
					}
					if err := l.sendError(errors.New("any")); !errors.Is(err, want) {
						t.Error(err)
					}
					if l.Value(t) != "value" {
						t.Error("it has not the values of its caller")
					}
				})
			}
		}
	}
}

// A new deadline replaces an earlier one, unless the earlier one has passed.
func TestALifeGoesOn(t *testing.T) {
	t.Parallel()
	slow, held := errors.New("slow"), errors.New("held")
	for _, waited := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := live(t.Context(), &Request{}, 10*time.Second, slow)
			l.window = 1
			defer l.end()
			if waited {
				_ = l.Done()
			}
			for range 5 {
				time.Sleep(9 * time.Second)
				if err := l.next(10*time.Second, held); err != nil || l.Err() != nil {
					t.Fatal(err, l.Err())
				}
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if err := l.next(10*time.Second, slow); err != held || l.cause() != held || l.Err() == nil { //nolint:errorlint // the very one
				t.Errorf("%v, %v, %v", err, l.cause(), l.Err())
			}
		})
	}
}
