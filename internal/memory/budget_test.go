package memory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const mib = 1 << 20

func TestWhatAShareMayTake(t *testing.T) {
	for name, test := range map[string]struct {
		total, shares int
		held          []int // bytes in use, by share, in order
		of            int   // index of the share that takes bytes
		least, most   int
		want          int
	}{
		"alone: its guarantee and some of the common half": {16 * mib, 1, nil, 0, 1, 100 * mib, 10 * mib},
		"of two":                          {16 * mib, 2, nil, 0, 1, 100 * mib, 6 * mib},
		"not more than asked for":         {16 * mib, 2, nil, 0, 1, 1000, 1000},
		"not less than needed":            {16 * mib, 2, nil, 0, 7 * mib, 7 * mib, 0},
		"what the others left":            {16 * mib, 4, []int{4 * mib, 4 * mib, 4 * mib}, 3, 1, 100 * mib, 4 * mib},
		"its guarantee if common is gone": {16 * mib, 8, []int{3 * mib, 3 * mib, 3 * mib, 3 * mib}, 7, 1, 100 * mib, mib},
		"nothing more":                    {16 * mib, 8, []int{3 * mib, 3 * mib, 3 * mib, 3 * mib}, 0, 1, 100 * mib, 0},
		"nothing is nothing":              {16 * mib, 1, nil, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := New(test.total)
			shares := make([]*Share, test.shares)
			for i := range shares {
				shares[i] = b.Share()
			}
			for i, n := range test.held {
				if got := shares[i].TryTake(n, n); got != n {
					t.Fatalf("share %d got %d of %d", i, got, n)
				}
			}
			if got := shares[test.of].TryTake(test.least, test.most); got != test.want {
				t.Errorf("took %d, want %d", got, test.want)
			}
			for _, s := range shares {
				s.Close()
			}
			if n := b.InUse(); n != 0 {
				t.Errorf("%d bytes are in use after all shares were closed", n)
			}
		})
	}
}

func TestOneRecordAtATimeMayExceedTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(4 * mib)
		first, second, third := b.Share(), b.Share(), b.Share()
		if err := first.Take(t.Context(), 10*mib); err != nil {
			t.Fatal(err)
		}
		served := make(chan int, 2)
		go func() { served <- errIs(t, second.Take(t.Context(), 9*mib), nil); second.Give(9 * mib) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), OverKept-time.Second)
		defer cancel()
		errIs(t, third.Take(ctx, 8*mib), context.DeadlineExceeded)
		if n := third.TryTake(1, mib/2); n != mib/2 {
			t.Errorf("beside a large record only %d bytes were to be had", n)
		}
		if n := b.InUse(); n != 10*mib+mib/2 {
			t.Errorf("%d bytes are in use", n)
		}
		select {
		case <-served:
			t.Error("two exceed the budget at once")
		default:
		}
		first.Give(10 * mib)
		<-served
		synctest.Wait()
		third.Close()
		errIs(t, third.Take(t.Context(), 1), errShareClosed)
		if n := b.InUse(); n != 0 {
			t.Errorf("%d bytes are in use at the end", n)
		}
	})
}

// A handler hangs with a record that exceeds the budget. Other shards can still get such records.
// How many such handlers may hang depends on the memory that their records use.
func TestAHungHandlerDoesNotKeepTheRightToExceedTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(8 * mib)
		hangs, second, third, fourth := b.Share(), b.Share(), b.Share(), b.Share()
		take := func(s *Share, n int, patience time.Duration) (time.Duration, error) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			began := time.Now()
			err := s.Take(ctx, n)
			return time.Since(began), err
		}
		if _, err := take(hangs, 10*mib, time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		// A waiting share is served after OverKept, even if no memory is returned.
		if after, err := take(second, 10*mib, time.Minute); err != nil || after != OverKept-time.Second {
			t.Fatalf("%v, after %v", err, after)
		}
		// Both handlers hang, so no further share may exceed the budget, however long it waits.
		if after, err := take(third, 9*mib, time.Hour); !errors.Is(err, ErrNoMemory) || after != time.Hour {
			t.Errorf("%v, after %v", err, after)
		}
		if n := b.InUse(); n != 20*mib {
			t.Errorf("%d bytes are in use", n)
		}
		second.Give(10 * mib) // it was only slow
		if after, err := take(third, 9*mib, time.Hour); err != nil || after > 0 {
			t.Errorf("%v, after %v", err, after)
		}
		third.Close()
		hangs.Close()
		// As long as all hanging shares together have at most half of the budget, another share
		// always gets room.
		small := []*Share{b.Share(), b.Share(), b.Share(), fourth, b.Share()}
		for _, s := range small {
			for s.TryTake(1, 16*mib) > 0 { // until nothing is left
			}
		}
		for i, s := range small {
			after, err := take(s, mib, time.Minute)
			if want := i < 4; (err == nil) != want {
				t.Errorf("share %d: %v after %v", i, err, after)
			}
		}
		for _, s := range append(small, second) {
			s.Close()
		}
		if n := b.InUse(); n != 0 {
			t.Errorf("%d bytes are in use at the end", n)
		}
	})
}

func TestClosingAShareEndsItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(mib)
		hog, s := b.Share(), b.Share()
		errIs(t, hog.Take(t.Context(), 2*mib), nil)
		done := make(chan error)
		go func() { done <- s.Take(t.Context(), 2*mib) }()
		synctest.Wait()
		s.Close()
		errIs(t, <-done, errShareClosed)
		s.TakeExcess(1)
		s.Give(1)
		if n := b.InUse(); n != 2*mib {
			t.Errorf("%d bytes are in use", n)
		}
		hog.TakeExcess(mib) // in excess, because it is already in memory
		if n := b.InUse(); n != 3*mib {
			t.Errorf("%d bytes are in use", n)
		}
	})
}

func errIs(t *testing.T, err, want error) int {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	return 0
}

// For any number of hanging handlers and any record sizes, the budget is exceeded by at most one
// page, unless a share keeps the reserve for longer than OverKept. Every shard that does not hang
// makes progress.
func TestTheBudgetHoldsAndNobodyStarves(t *testing.T) {
	for _, test := range []struct{ shards, hung, largest int }{{4, 1, 10 * mib}, {40, 39, 200 << 10}, {300, 200, 50 << 10}, {300, 0, 10 * mib}} {
		t.Run(fmt.Sprintf("%d shards, %d hang, records of up to %d bytes", test.shards, test.hung, test.largest), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const total = 32 * mib
				b := New(total)
				var highest atomic.Int64
				note := func() { // synctest runs goroutines in parallel
					for n := int64(b.InUse()); ; {
						if h := highest.Load(); n <= h || highest.CompareAndSwap(h, n) {
							return
						}
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				shares := make([]*Share, test.shards)
				for i := range shares {
					shares[i] = b.Share()
				}
				var hanging, working sync.WaitGroup
				for i, s := range shares {
					if i < test.hung {
						hanging.Go(func() { // takes as much as possible and keeps it
							for s.TryTake(1, 1+rand.IntN(100<<10)) > 0 {
								note()
							}
							<-ctx.Done()
							s.Close()
						})
						continue
					}
					working.Go(func() {
						defer s.Close()
						for range 50 {
							n := 1 + rand.IntN(test.largest)
							if err := s.Take(ctx, n); err != nil {
								t.Error(err)
								return
							}
							note()
							if m := s.TryTake(1, 1<<20); m > 0 && rand.IntN(2) == 0 {
								note()
								time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
								s.Give(m)
							} else {
								s.Give(m)
							}
							time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
							s.Give(n)
						}
					})
				}
				began := time.Now()
				working.Wait()
				if took := time.Since(began); took > time.Hour {
					t.Errorf("50 rounds took %v", took)
				}
				cancel()
				hanging.Wait()
				if h := highest.Load(); h > total+int64(test.largest) {
					t.Errorf("%d bytes were in use, of %d", h, total)
				}
				if n := b.InUse(); n != 0 {
					t.Errorf("%d bytes are in use at the end", n)
				}
			})
		})
	}
}

// The error that describes a lack of memory costs one allocation, because it is made at each look
// at a shard that waits.
func TestALackOfMemoryIsCheap(t *testing.T) {
	b := New(64 << 20)
	err := b.Lack()
	if want := "no memory is free for more records: 0 MiB of the 64 MiB of MaxMemory are in use, and 0 shards wait in line"; !errors.Is(err, ErrNoMemory) || err.Error() != want {
		t.Errorf("the error is %v, want %s that wraps ErrNoMemory", err, want)
	}
	if n := testing.AllocsPerRun(100, func() { err = b.Lack() }); n > 1 {
		t.Errorf("an error costs %v allocations, want 1", n)
	}
}
