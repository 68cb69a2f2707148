package polling

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/kinesistest"
)

// seaside is a set of feeds that each poll an empty shard once per second.
type seaside struct {
	*fed
	stop  []func() // for each feed a function that ends its Next and closes it
	fails atomic.Int64

	mu    sync.Mutex
	calls map[string][]time.Time // times of GetRecords calls, by shard
	now   int                    // calls in progress
	most  int
	fault func(shard string, n int) kinesistest.Fault // of its nth call; nil for none
}

func idling(t *testing.T, shards int, delay time.Duration, f func(s *seaside)) {
	feeding(t, kinesistest.Config{NoLimits: true}, shards, 64*mib, func(fed *fed) {
		s := &seaside{fed: fed, calls: map[string][]time.Time{}}
		fed.srv.Control("GetRecords", func(c *kinesistest.Call) kinesistest.Fault {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.calls[c.Shard] = append(s.calls[c.Shard], time.Now())
			s.now++
			s.most = max(s.most, s.now)
			fault := kinesistest.Fault{}
			if s.fault != nil {
				fault = s.fault(c.Shard, len(s.calls[c.Shard]))
			}
			if fault.Delay == 0 {
				fault.Delay = delay
			}
			time.AfterFunc(fault.Delay-1, func() { // just before the next call can start
				s.mu.Lock()
				s.now--
				s.mu.Unlock()
			})
			return fault
		})
		for i := range shards {
			f := s.feed(i, func(p *Poll) {
				p.Listener = &source.ListenerFuncs{OnFailed: func(error, bool, time.Duration) { s.fails.Add(1) }}
			})
			ctx, cancel := context.WithCancel(s.t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if _, err := f.Next(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("Next of an idle shard returned %v", err)
				}
			}()
			s.stop = append(s.stop, func() {
				cancel()
				<-ended
				f.Close()
			})
		}
		time.Sleep(5 * time.Second)
		defer s.stopAll()
		f(s)
	})
}

func (s *seaside) stopAll() {
	var all sync.WaitGroup
	for _, stop := range s.stop {
		all.Go(stop)
	}
	all.Wait()
}

// during sleeps for d. It returns the number of calls in that time and the maximum number of
// concurrent calls. longest is the longest time without a call for a shard that is not in except.
func (s *seaside) during(d time.Duration, except map[string]bool) (calls, most int, longest time.Duration) {
	s.mu.Lock()
	began := time.Now()
	s.most = s.now
	s.mu.Unlock()
	time.Sleep(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	for shard, times := range s.calls {
		last := began
		for _, at := range times {
			if at.After(began) {
				calls++
				if !except[shard] {
					longest = max(longest, at.Sub(last))
				}
				last = at
			}
		}
		if !except[shard] {
			longest = max(longest, time.Since(last))
		}
	}
	return calls, s.most, longest
}

func (s *seaside) faults(f func(shard string, n int) kinesistest.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// longestPause is the maximum time between two reads of an idle shard, including the ticks over
// which reads are collected.
const longestPause = time.Second + 2*tick

// Reads that are due together are sent together, by a few goroutines.
func TestIdleShardsAreReadInWaves(t *testing.T) {
	const shards, delay = 400, 10 * time.Millisecond
	idling(t, shards, delay, func(s *seaside) {
		time.Sleep(5 * time.Second) // so that additional goroutines of the start end
		calls, most, longest := s.during(10*time.Second, nil)
		if calls < shards*9 {
			t.Errorf("%d calls in 10 s", calls)
		}
		if most < 8 {
			t.Errorf("%d reads were under way together at most", most)
		}
		if longest > longestPause+delay {
			t.Errorf("a shard was left alone for %v", longest)
		}
		s.sched.mu.Lock()
		n := len(s.sched.parked) + s.sched.coming
		conns := len(s.sched.conns) + s.sched.flying
		s.sched.mu.Unlock()
		if n > leastParked+4 {
			t.Errorf("%d goroutines read %d idle shards", n, shards)
		}
		if conns > 3*int(leastWidth) {
			t.Errorf("%d conns for %d reads that are under way together", conns, most)
		}
	})
}

// An answer that does not arrive delays other reads by at most ten ticks, however many answers
// hang.
func TestAHungAnswerHoldsUpNobody(t *testing.T) {
	const shards, each = 300, 17
	// In the second case, answers hang until the calls are abandoned.
	for _, hang := range []time.Duration{7 * time.Second, time.Minute} {
		idling(t, shards, 10*time.Millisecond, func(s *seaside) {
			hung := map[string]bool{}
			began := time.Now()
			n := 0
			s.faults(func(shard string, _ int) kinesistest.Fault {
				if n++; n%each == 0 && time.Since(began) < time.Second {
					hung[shard] = true
					return kinesistest.Fault{Delay: hang}
				}
				return kinesistest.Fault{}
			})
			time.Sleep(time.Second)
			s.mu.Lock()
			except := make(map[string]bool, len(hung))
			for shard := range hung {
				except[shard] = true
			}
			s.mu.Unlock()
			if len(except) < shards/each/2 {
				t.Fatalf("%d calls hang: the test shows nothing", len(except))
			}
			if _, _, longest := s.during(5*time.Second, except); longest > longestPause+10*tick {
				t.Errorf("a shard was left alone for %v while others hung", longest)
			}
			time.Sleep(min(hang, 20*time.Second))
			if _, _, longest := s.during(3*time.Second, nil); longest > longestPause+2*tick {
				t.Errorf("a shard is left alone for %v after others hung", longest)
			}
		})
	}
}

// A shard that always answers slowly is read alone and delays no wave. If many slow shards are due
// together, other reads wait until the scheduler adds goroutines. It adjusts their number only
// every lookEvery ticks, so other reads may wait that long.
func TestSlowShardsAreReadAlone(t *testing.T) {
	const shards, delay = 300, 10 * time.Millisecond
	idling(t, shards, delay, func(s *seaside) {
		lame := map[string]bool{}
		for i, shard := range s.shards {
			if i%4 == 0 {
				lame[shard] = true
			}
		}
		s.faults(func(shard string, _ int) kinesistest.Fault {
			if lame[shard] {
				return kinesistest.Fault{Delay: 2 * slow}
			}
			return kinesistest.Fault{}
		})
		time.Sleep(3 * time.Second)
		if _, _, longest := s.during(5*time.Second, lame); longest > longestPause+lookEvery*tick+delay {
			t.Errorf("a shard was left alone for %v beside others that are slow", longest)
		}
		for i, f := range s.open {
			f.mu.Lock()
			light := f.light
			f.mu.Unlock()
			if light == lame[s.shards[i]] {
				t.Fatalf("shard %d: slow %v, read in waves %v", i, lame[s.shards[i]], light)
			}
		}
	})
}

// All answers of a wave begin to hang at the same time. The reads behind an answer continue while
// that answer hangs.
func TestAWaveOfHungAnswersIsSpread(t *testing.T) {
	const shards = 100
	idling(t, shards, 10*time.Millisecond, func(s *seaside) {
		s.faults(func(string, int) kinesistest.Fault { return kinesistest.Fault{Delay: 15 * time.Second} })
		time.Sleep(3 * time.Second)
		s.sched.mu.Lock()
		flying := s.sched.flying
		waits := 0
		for _, w := range s.sched.underWay {
			waits += w.size - w.taken
		}
		s.sched.mu.Unlock()
		if flying != shards || waits != 0 {
			t.Errorf("%d reads are under way, nobody waits for %d of them", flying, waits)
		}
		s.faults(nil)
		time.Sleep(15 * time.Second)
		if _, _, longest := s.during(5*time.Second, nil); longest > longestPause+2*tick {
			t.Errorf("a shard is left alone for %v after all hung", longest)
		}
	})
}

// A service that takes a second to answer gets the maximum number of concurrent calls.
func TestASlowServiceIsAskedAsMuchAsMayBe(t *testing.T) {
	idling(t, 900, time.Second, func(s *seaside) {
		time.Sleep(10 * time.Second)
		calls, most, _ := s.during(10*time.Second, nil)
		if most > int(mostWidth) || most < int(mostWidth)*9/10 {
			t.Errorf("%d reads were under way together", most)
		}
		if perSecond := calls / 10; perSecond < int(mostWidth)*8/10 {
			t.Errorf("%d reads a second", perSecond)
		}
	})
}

// Closing a feed in the middle of a wave ends its read soon, and no other read.
func TestAFeedIsClosedInTheMiddleOfAWave(t *testing.T) {
	const shards = 300
	idling(t, shards, 10*time.Millisecond, func(s *seaside) {
		s.faults(func(string, int) kinesistest.Fault { return kinesistest.Fault{Delay: 3 * time.Second} })
		time.Sleep(500 * time.Millisecond)
		closed, under := map[string]bool{}, map[bool]int{}
		for i, f := range s.open {
			f.mu.Lock()
			turning := f.state == turning
			f.mu.Unlock()
			if under[turning] >= 15 {
				continue
			}
			under[turning]++
			began := time.Now()
			s.stop[i]()
			if took := time.Since(began); took > 10*patientTicks*tick {
				t.Errorf("closing a feed took %v", took)
			}
			closed[s.shards[i]] = true
		}
		if n := under[true]; n < 15 {
			t.Errorf("%d feeds were closed while a read was under way: the test shows nothing", n)
		}
		s.faults(nil)
		time.Sleep(5 * time.Second)
		if _, _, longest := s.during(5*time.Second, closed); longest > longestPause+2*tick {
			t.Errorf("a shard is left alone for %v", longest)
		}
		if n := s.fails.Load(); n != 0 {
			t.Errorf("%d reads of other feeds failed", n)
		}
	})
}

// If everything is closed in the middle of waves, Close does not wait for answers.
func TestAllEndsInTheMiddleOfWaves(t *testing.T) {
	idling(t, 300, 10*time.Millisecond, func(s *seaside) {
		s.faults(func(string, int) kinesistest.Fault { return kinesistest.Fault{Delay: 15 * time.Second} })
		time.Sleep(700 * time.Millisecond)
		began := time.Now()
		s.stopAll()
		s.sched.Close()
		if took := time.Since(began); took > 10*patientTicks*tick {
			t.Errorf("it took %v", took)
		}
	})
}

// If the service closes a connection after the request, the read does not fail, because the request
// is sent again. A read fails only if its connection was new.
func TestConnectionsThatAreClosedCostNoRead(t *testing.T) {
	idling(t, 300, 10*time.Millisecond, func(s *seaside) {
		cuts := int64(0)
		s.faults(func(_ string, n int) kinesistest.Fault {
			if n%4 != 0 {
				return kinesistest.Fault{}
			}
			cuts++
			return kinesistest.Fault{Cut: true}
		})
		calls, _, longest := s.during(5*time.Second, nil)
		if calls < 300*5 {
			t.Errorf("%d calls in 5 s", calls)
		}
		if longest > longestPause+2*tick {
			t.Errorf("a shard was left alone for %v", longest)
		}
		s.faults(nil)
		if failed, mute := s.fails.Load(), s.mute.Load(); cuts < 100 || failed != mute || failed > cuts/4 {
			t.Errorf("%d connections were closed, %d of them new, and %d reads failed", cuts, mute, failed)
		}
	})
}

// Unused conns are removed.
func TestLanesGo(t *testing.T) {
	idling(t, 300, 10*time.Millisecond, func(s *seaside) {
		s.stopAll()
		// The stopped feeds still have scheduled turns. These turns make no reads.
		time.Sleep(longestPause + (unusedTicks+2)*tick)
		s.sched.mu.Lock()
		defer s.sched.mu.Unlock()
		if n := len(s.sched.conns); n != 0 {
			t.Errorf("%d conns are kept", n)
		}
	})
}

// These cases show how many reads may begin, and when a wave waits for more room.
func TestRoomForWaves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                        string
		width, flying, light, ended int
		all, waves                  int
	}{
		{"nothing is under way", 64, 0, 100, 0, 64, 64},
		{"full", 64, 64, 100, 100, 0, 0},
		{"over full, since the width has shrunk", 64, 70, 100, 100, 0, 0},
		{"little room, and more soon", 64, 60, 100, waveSize, 4, 0},
		{"little room, and all that waits fits", 64, 60, 4, waveSize, 4, 4},
		{"little room, and the reads under way hang", 64, 60, 100, waveSize - 1, 4, 4},
		{"room for half of what may be read at a time", 16, 8, 100, 100, 8, 8},
		{"less room than that", 16, 9, 100, 100, 7, 0},
		{"room for half a wave", 64, 64 - waveSize/2, 100, 100, waveSize / 2, waveSize / 2},
	} {
		s := &Scheduler{width: crew(c.width), flying: c.flying, light: c.light, ended: c.ended}
		if all, waves := s.room(); all != c.all || waves != c.waves {
			t.Errorf("%s: %d and %d, want %d and %d", c.name, all, waves, c.all, c.waves)
		}
	}
}
