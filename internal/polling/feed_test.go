package polling

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/kinesistest"
)

func TestTheNextReadIsMadeWhileTheHandlerWorks(t *testing.T) {
	feeding(t, kinesistest.Config{NoLimits: true}, 1, 64*mib, func(s *fed) {
		s.put(0, 400, 1000)
		s.srv.Control("GetRecords", func(*kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{Delay: time.Second} })
		f := s.feed(0, func(p *Poll) { p.Limit = 20 })
		began := time.Now()
		s.take(f, 0, 400, time.Second)
		if took := time.Since(began); took > 24*time.Second {
			t.Errorf("20 reads of a second and 20 pages handled in a second each took %v together", took)
		}
	})
}

// Records that a slow handler does not take are not read again and do not occupy a connection. When
// the handler gets faster, reading gets faster as well.
func TestASlowHandlerIsReadForInItsOwnTime(t *testing.T) {
	feeding(t, kinesistest.Config{NoLimits: true}, 1, 64*mib, func(s *fed) {
		s.put(0, 8000, 1000)
		f := s.feed(0)
		next := s.take(f, 0, 4000, 10*time.Second)
		if f.limit > 1000 {
			t.Errorf("%d records are asked for, although the handler takes 500 in 10 s", f.limit)
		}
		if held, most := s.budget.InUse(), 3*window; held > most {
			t.Errorf("%d bytes are held for one shard, want at most %d", held, most)
		}
		if got := s.got.Load(); got > 10<<20 {
			t.Errorf("%d bytes were received for %d that were handled", got, 4000*1000)
		}
		before := s.srv.Requests("GetRecords")
		s.take(f, next, 8000-next, 0)
		if n := s.srv.Requests("GetRecords") - before; n > 6 {
			t.Errorf("a handler that is quick again needed %d reads", n)
		}
	})
}

func TestFailuresWithinALargeAnswerLoseAndRepeatNothing(t *testing.T) {
	for name, fault := range map[string]kinesistest.Fault{
		"cut in the first part": {CutAfter: 100_000}, "cut in the second part": {CutAfter: 700_000}, "cut near the end": {CutAfter: 2_900_000},
	} {
		t.Run(name, func(t *testing.T) {
			feeding(t, kinesistest.Config{NoLimits: true}, 1, 64*mib, func(s *fed) {
				s.put(0, 3000, 1000)
				faults := 0
				s.srv.Control("GetRecords", func(*kinesistest.Call) kinesistest.Fault {
					if faults++; faults <= 3 {
						return fault
					}
					return kinesistest.Fault{}
				})
				fails := 0
				f := s.feed(0, func(p *Poll) {
					p.Listener = &source.ListenerFuncs{OnFailed: func(error, bool, time.Duration) { fails++ }}
				})
				s.take(f, 0, 3000, 0)
				if fails == 0 {
					t.Error("nothing failed: the test shows nothing")
				}
				if st := f.Status(); st.Err != nil || st.Attempt != 0 {
					t.Errorf("the status still says %v after all was read", st.Err)
				}
			})
		})
	}
}

// However many handlers hang, the other shards receive all records. Memory stays within the budget.
func TestHungHandlersStopTheirOwnShardsOnly(t *testing.T) {
	const shards, hung, memory, each = 40, 30, 16 * mib, 1500
	feeding(t, kinesistest.Config{NoLimits: true}, shards, memory, func(s *fed) {
		for n := range each * shards {
			s.srv.Put("s", fmt.Sprintf("k-%d", n%997), bytes.Repeat([]byte{'x'}, 1000))
		}
		var highest, handled atomic.Int64
		ctx, cancel := context.WithCancel(s.t.Context())
		defer cancel()
		var hanging, working sync.WaitGroup
		for i := range shards {
			f := s.feed(i)
			if i < hung {
				hanging.Go(func() {
					if _, err := f.Next(ctx); err == nil {
						<-ctx.Done()
					}
				})
				continue
			}
			working.Go(func() {
				for {
					page, err := f.Next(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					handled.Add(int64(len(page.Records)))
					behind := page.Behind
					page.Release()
					if behind == 0 {
						return
					}
				}
			})
		}
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			for ctx.Err() == nil {
				highest.Store(max(highest.Load(), int64(s.budget.InUse())))
				time.Sleep(5 * time.Millisecond)
			}
		}()
		began := time.Now()
		working.Wait()
		if took := time.Since(began); took > 5*time.Minute {
			t.Errorf("it took %v", took)
		}
		if handled.Load() < each*(shards-hung)/2 {
			t.Errorf("only %d records were handled", handled.Load())
		}
		cancel()
		hanging.Wait()
		<-watched
		if h := highest.Load(); h > memory+mib || h < mib {
			t.Errorf("%d bytes were held at most, the budget is %d", h, memory)
		}
		t.Logf("%d bytes held at most", highest.Load())
	})
}

func TestARecordLargerThanAShareOfMemoryIsRead(t *testing.T) {
	feeding(t, kinesistest.Config{NoLimits: true}, 1, mib, func(s *fed) {
		for range 8 { // more than the common memory and the share together
			h := s.budget.Share()
			for h.TryTake(1, 1<<30) > 0 {
			}
			s.hogs = append(s.hogs, h)
		}
		s.put(0, 5, 700_000)
		f := s.feed(0)
		s.take(f, 0, 5, 0)
	})
}

// An answer without records wakes no goroutine. Shards do not read in sync. A start with many
// shards does not cause a burst.
func TestManyIdleShards(t *testing.T) {
	const shards = 300
	feeding(t, kinesistest.Config{NoLimits: true}, shards, 64*mib, func(s *fed) {
		var mu sync.Mutex
		var calls []time.Time
		s.srv.Control("", func(*kinesistest.Call) kinesistest.Fault {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, time.Now())
			return kinesistest.Fault{Delay: 50 * time.Millisecond}
		})
		ctx, cancel := context.WithCancel(s.t.Context())
		var all sync.WaitGroup
		began := time.Now()
		for i := range shards {
			f := s.feed(i)
			all.Go(func() {
				if _, err := f.Next(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("Next of an idle shard returned %v", err)
				}
			})
		}
		time.Sleep(20 * time.Second)
		for _, f := range s.open {
			f.mu.Lock()
			if f.hungry {
				t.Error("a read that brought nothing woke somebody up")
			}
			f.mu.Unlock()
		}
		cancel()
		all.Wait()
		mu.Lock()
		defer mu.Unlock()
		spread := func(from, to, in time.Duration) (total, most int) {
			counts := map[int]int{}
			for _, c := range calls {
				if at := c.Sub(began); at >= from && at < to {
					counts[int(at/in)]++
					total++
				}
			}
			for _, n := range counts {
				most = max(most, n)
			}
			return total, most
		}
		if _, most := spread(0, 5*time.Second, 50*time.Millisecond); most > int(mostWidth) {
			t.Errorf("%d calls in 50 ms at the start, want at most %d", most, mostWidth)
		}
		if now, _ := spread(0, tick, tick); now > 2*int(leastWidth) {
			t.Errorf("%d calls at once at the start", now)
		}
		total, most := spread(5*time.Second, 20*time.Second, tick)
		if perSecond := total / 15; perSecond < shards*9/10 || perSecond > shards*5/4 {
			t.Errorf("%d polls a second of %d shards", perSecond, shards)
		}
		if most > shards/4 {
			t.Errorf("%d of %d polls in one tick", most, shards)
		}
	})
}

func TestEveryWaitHasANameAndEnds(t *testing.T) {
	for name, test := range map[string]struct {
		want  health.Reason
		setup func(s *fed, f *Feed)
		next  bool // Next waits
	}{
		"nothing asked yet":    {health.NotStarted, func(*fed, *Feed) {}, false},
		"at the tip":           {health.AtTip, func(s *fed, f *Feed) { s.put(0, 1, 100); s.take(f, 0, 1, 0) }, true},
		"an iterator":          {health.Positioning, func(s *fed, _ *Feed) { s.delay("GetShardIterator") }, true},
		"an answer":            {health.Requesting, func(s *fed, _ *Feed) { s.delay("GetRecords") }, true},
		"a failure":            {health.ReadFailed, func(s *fed, _ *Feed) { s.fail("GetRecords") }, true},
		"a handler that hangs": {health.AwaitingHandler, func(s *fed, f *Feed) { s.put(0, 3000, 1000); _, _ = f.Next(s.t.Context()) }, false},
		"memory":               {health.AwaitingMemory, func(s *fed, _ *Feed) { s.hog(); s.put(0, 1, 900_000) }, true},
		"the end":              {health.Ended, func(s *fed, f *Feed) { s.srv.Split("s", s.shards[0]); _, _ = f.Next(s.t.Context()) }, false},
		"the limits": {health.Pacing, func(s *fed, f *Feed) {
			s.put(0, 10, 100)
			time.Sleep(time.Second)
			f.poll.Limit, f.limit = 1, 1
			s.take(f, 0, 1, 0)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			feeding(t, kinesistest.Config{NoLimits: true}, 1, mib, func(s *fed) {
				f := s.feed(0)
				test.setup(s, f)
				ctx, cancel := context.WithCancelCause(s.t.Context())
				cause := errors.New("enough")
				done := make(chan error, 1)
				if test.next {
					go func() {
						_, err := f.Next(ctx)
						done <- err
					}()
				}
				if test.want != health.Pacing {
					time.Sleep(5 * time.Second)
				}
				synctest.Wait()
				st := f.Status()
				if st.Doing != test.want || st.Since.After(time.Now()) {
					t.Errorf("it is %s since %v, want %s", st.Doing, st.Since, test.want)
				}
				switch st.Doing {
				case health.Positioning, health.Requesting, health.ReadFailed, health.AwaitingMemory:
					if tried := time.Since(st.Trying); tried < 4*time.Second || tried > 5*time.Second {
						t.Errorf("it has been trying for %v", tried)
					}
				default:
					if !st.Trying.IsZero() {
						t.Errorf("it is trying since %v", st.Trying)
					}
				}
				if (st.Doing == health.ReadFailed) != (st.Err != nil && st.Attempt > 0) {
					t.Errorf("attempt %d, %v", st.Attempt, st.Err)
				}
				began := time.Now()
				cancel(cause)
				if test.next {
					if err := <-done; !errors.Is(err, cause) {
						t.Errorf("Next returned %v", err)
					}
				}
				f.Close()
				if took := time.Since(began); took > 0 {
					t.Errorf("the wait ended after %v", took)
				}
			})
		})
	}
}

func (s *fed) delay(action string) {
	s.srv.Control(action, func(*kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{Delay: time.Hour} })
}

func (s *fed) fail(action string) {
	s.srv.Control(action, func(*kinesistest.Call) kinesistest.Fault {
		return kinesistest.Fault{Err: &kinesistest.Error{Code: "InternalFailure"}}
	})
}

// hog takes all memory and the reserve until the test ends.
func (s *fed) hog() {
	for range 2 {
		h := s.budget.Share()
		for h.TryTake(1, 1<<30) > 0 {
		}
		if err := h.Take(s.t.Context(), 1<<30); err != nil {
			s.t.Fatal(err)
		}
		s.hogs = append(s.hogs, h)
	}
}

func TestLastOfAFeed(t *testing.T) {
	feeding(t, kinesistest.Config{}, 1, mib, func(s *fed) {
		f := s.feed(0, func(p *Poll) { p.Idle = time.Minute })
		if _, err := f.Last(s.t.Context()); !errors.Is(err, errAhead) {
			t.Errorf("before the tip was seen: %v", err)
		}
		s.put(0, 1, 10)
		s.take(f, 0, 1, time.Second)
		s.put(1, 1, 10)
		began := time.Now()
		page, err := f.Last(s.t.Context())
		if err != nil || len(page.Records) != 1 || time.Since(began) > time.Second {
			t.Errorf("%d records, %v, after %v", len(page.Records), err, time.Since(began))
		}
		page.Release()

		g := s.feed(0, func(p *Poll) { p.Limit = 1 })
		page, err = g.Next(s.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second) // the second record is in the shard, but not read
		if _, err := g.Last(s.t.Context()); !errors.Is(err, errAhead) {
			t.Errorf("with something read and not handled: %v", err)
		}
		page.Release()
		ctx, cancel := context.WithCancel(s.t.Context())
		cancel()
		if _, err := g.Next(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("what was read ahead is handed over after the end: %v", err)
		}
	})
}

func TestAFeedSaysWhatIsGoneAndGoesOn(t *testing.T) {
	feeding(t, kinesistest.Config{}, 1, mib, func(s *fed) {
		missing := s.feed(0, func(p *Poll) { p.Shard = "shardId-000000000099" })
		if _, err := missing.Next(s.t.Context()); !errors.Is(err, streams.ErrNoShard) {
			t.Error(err)
		}
		f := s.feed(0)
		s.put(0, 1, 100)
		s.take(f, 0, 1, 0)
		s.srv.DeleteStream("s")
		for range 2 { // the second call queries again, because the end of the shortage is unknown
			if _, err := f.Next(s.t.Context()); !errors.Is(err, streams.ErrNoStream) {
				t.Error(err)
			}
		}
	})
}

func TestLimitsOfRecords(t *testing.T) {
	for name, test := range map[string]struct{ limit, room, records, bytes, want int }{
		"what fits":                        {10_000, 400_000, 500, 500_000, 400},
		"always less than before":          {300, 400_000, 500, 500_000, 299},
		"large records":                    {10_000, 400_000, 1, 900_000, 1},
		"nothing known":                    {10_000, 400_000, 0, 0, 5000},
		"not less than one":                {1, 400_000, 0, 0, 1},
		"not less than one, large records": {1, 400_000, 3, 3_000_000, 1},
	} {
		if got := slower(int32(test.limit), test.room, test.records, test.bytes); int(got) != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
	if faster(400, 10_000) != 800 || faster(6000, 10_000) != 10_000 {
		t.Error("a limit does not grow to what is allowed")
	}
}

// A feed wakes its reader once for each page and not for other events. The next call of Next
// returns the page. Last and the end of the shard work as for a reader that waits.
func TestAFeedWakesAReaderThatDoesNotWait(t *testing.T) {
	feeding(t, kinesistest.Config{NoLimits: true}, 1, 64*mib, func(s *fed) {
		var woken atomic.Int32
		ctx, cancel := context.WithCancel(s.t.Context())
		defer cancel()
		f := NewFeed(&outlasted{owner{ctx, nil, func() { woken.Add(1) }}, s.t.Context()}, s.feed(0).poll, s.sched, s.budget)
		s.open = append(s.open, f)
		nothing := func() {
			t.Helper()
			if _, err := f.Next(s.t.Context()); !errors.Is(err, source.ErrEmpty) {
				t.Fatalf("%v where nothing is to be had", err)
			}
		}
		nothing()
		// Reads happen at whole ticks. No read happens while records are put.
		time.Sleep(time.Minute + tick/2)
		if n := woken.Load(); n != 0 {
			t.Errorf("woken %d times by answers that brought nothing", n)
		}
		f.mu.Lock()
		if f.state == scheduled && f.end != nil {
			t.Error("an idle feed keeps a context")
		}
		f.mu.Unlock()
		for i := range 3 {
			s.put(i*10, 10, 100)
			time.Sleep(5 * time.Second)
			if n := woken.Load(); n != int32(i+1) {
				t.Errorf("woken %d times after %d answers", n, i+1)
			}
			page, err := f.Next(s.t.Context())
			if err != nil || len(page.Records) != 10 {
				s.t.Fatalf("%d records, %v", len(page.Records), err)
			}
			page.Release()
			nothing()
		}
		cancel() // the term has ended, but the validity of the lease has not
		before := s.srv.Requests("GetRecords")
		time.Sleep(time.Minute)
		if n := s.srv.Requests("GetRecords") - before; n > 1 {
			t.Errorf("%d reads after the feed's context had ended", n)
		}
	})
}
