package group

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestBoundedEndsAsADeadlineDoes(t *testing.T) {
	type key struct{}
	for _, c := range []struct {
		name string
		ask  bool          // for Done, before anything happens
		more time.Duration // the parent's own deadline; 0 for none
		do   func(b *bounded, cancel context.CancelFunc)
		want error
	}{
		{"at first", false, 0, func(*bounded, context.CancelFunc) {}, nil},
		{"just before its time", false, 0, func(*bounded, context.CancelFunc) { time.Sleep(time.Second - 1) }, nil},
		{"at its time", false, 0, func(*bounded, context.CancelFunc) { time.Sleep(time.Second) }, context.DeadlineExceeded},
		{"at its time, heard", true, 0, func(*bounded, context.CancelFunc) { time.Sleep(time.Second) }, context.DeadlineExceeded},
		{"at the parent's time", true, time.Millisecond, func(*bounded, context.CancelFunc) { time.Sleep(time.Millisecond) }, context.DeadlineExceeded},
		{"ended", false, 0, func(b *bounded, _ context.CancelFunc) { b.end() }, context.Canceled},
		{"ended, heard", true, 0, func(b *bounded, _ context.CancelFunc) { b.end() }, context.Canceled},
		{"with its parent", false, 0, func(_ *bounded, cancel context.CancelFunc) { cancel() }, context.Canceled},
		{"with its parent, heard", true, 0, func(_ *bounded, cancel context.CancelFunc) { cancel() }, context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "kept"))
				defer cancel()
				if c.more > 0 {
					parent, cancel = context.WithTimeout(parent, c.more)
					defer cancel()
				}
				b := bound(parent, time.Second)
				defer b.end()
				if at, ok := b.Deadline(); !ok || time.Until(at) != cmp.Or(c.more, time.Second) {
					t.Errorf("the deadline is in %v", time.Until(at))
				}
				if c.ask {
					b.Done()
				}
				c.do(b, cancel)
				synctest.Wait()
				if err := b.Err(); !errors.Is(err, c.want) {
					t.Errorf("it ends with %v, want %v", err, c.want)
				}
				child, stop := context.WithCancel(b)
				defer stop()
				synctest.Wait()
				select {
				case <-child.Done():
					if c.want == nil {
						t.Error("a context made from it has ended")
					}
				default:
					if c.want != nil {
						t.Error("a context made from it goes on")
					}
				}
				if b.Value(key{}) != "kept" {
					t.Error("the parent's values are lost")
				}
			})
		})
	}
}

func TestABoundThatNobodyWaitsForCostsOneObject(t *testing.T) {
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		b := bound(ctx, time.Second)
		_, _ = b.Deadline()
		_ = b.Err()
		b.end()
	}); n > 1 {
		t.Errorf("%v objects", n)
	}
}
