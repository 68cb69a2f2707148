package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPausesDoubleUpToTheHighest(t *testing.T) {
	const low, high = 100 * time.Millisecond, 5 * time.Second
	for failures, full := range map[int]time.Duration{
		1: low, 2: 2 * low, 6: 32 * low, 7: high, 39: high, 40: high, 64: high, 65: high, 1 << 30: high,
	} {
		for range 100 {
			if d := Pause(low, high, failures); d < full/2 || d > full {
				t.Fatalf("%v after %d failures, want between half of %v and that", d, failures, full)
			}
		}
	}
	if d := Pause(time.Hour, time.Second, 1); d > time.Second {
		t.Errorf("%v, with a highest of 1 s", d)
	}
	b := Backoff{Low: low, High: high}
	for range 6 {
		b.Next()
	}
	if d := b.Next(); d < high/2 || b.Failures != 7 {
		t.Errorf("%v after %d failures", d, b.Failures)
	}
	b.Reset()
	if d := b.Next(); d > low {
		t.Errorf("%v after a success and a failure", d)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("over")
		ctx, cancel := context.WithCancelCause(t.Context())
		began := time.Now()
		if err := Wait(ctx, time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		time.AfterFunc(time.Second, func() { cancel(why) })
		if err := Wait(ctx, time.Minute); !errors.Is(err, why) || time.Since(began) != time.Minute+time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		for _, d := range []time.Duration{0, -1} {
			if err := Wait(ctx, d); !errors.Is(err, why) {
				t.Errorf("after %v: %v", d, err)
			}
		}
	})
}
