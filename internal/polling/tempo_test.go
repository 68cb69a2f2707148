package polling

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir/kinesistest"
)

// drain takes and releases pages of f until it is stopped.
func (s *fed) drain(f *Feed) (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			page, err := f.Next(ctx)
			if err != nil {
				return
			}
			page.Release()
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// reads returns the number of reads during d.
func (s *fed) reads(d time.Duration) int {
	before := s.srv.Requests("GetRecords")
	time.Sleep(d)
	return s.srv.Requests("GetRecords") - before
}

// A shard at its tip is read twice as often while it returns records, and at the normal interval
// after that. If other readers cause throttling, it is read less often for a while. Failed reads
// are counted.
func TestTheIdleIntervalAdapts(t *testing.T) {
	feeding(t, kinesistest.Config{}, 1, 64*mib, func(s *fed) {
		f := s.feed(0)
		defer s.drain(f)()
		var flowing, throttle, fail atomic.Bool
		s.srv.Control("GetRecords", func(*kinesistest.Call) kinesistest.Fault {
			switch {
			case throttle.CompareAndSwap(true, false):
				return kinesistest.Fault{Err: &kinesistest.Error{Code: "ProvisionedThroughputExceededException"}}
			case fail.CompareAndSwap(true, false):
				return kinesistest.Fault{Err: &kinesistest.Error{Code: "InternalFailure"}}
			}
			return kinesistest.Fault{}
		})
		ended := make(chan struct{})
		defer func() { <-ended }()
		ctx, cancel := context.WithCancel(s.t.Context())
		defer cancel()
		go func() {
			defer close(ended)
			for n := 0; ctx.Err() == nil; n++ {
				time.Sleep(100 * time.Millisecond)
				if flowing.Load() {
					s.put(n, 1, 100)
				}
			}
		}()
		expect := func(what string, length time.Duration, least, most int) {
			t.Helper()
			if n := s.reads(length); n < least || n > most {
				t.Errorf("%s: %d reads in %v, want %d to %d", what, n, length, least, most)
			}
		}
		time.Sleep(5 * time.Second)
		expect("idle", 40*time.Second, 40, 50)
		flowing.Store(true)
		time.Sleep(2 * time.Second)
		expect("while there is something", 40*time.Second, 75, 100)
		flowing.Store(false)
		time.Sleep(2 * time.Second)
		expect("idle again", 40*time.Second, 40, 50)
		throttle.Store(true)
		for throttle.Load() {
			time.Sleep(10 * time.Millisecond)
		}
		// The first read is at a bit more than 1 s. The intervals after it are 2, 1.75, 1.5, 1.25
		// and 1 s, each reduced by up to a tenth. The second read is 2.8 to 3.2 s from now, the
		// fourth up to 6.5 s, and the sixth after 7.5 s.
		expect("just after a throttled read", 2500*time.Millisecond, 1, 1)
		expect("… and then", 5*time.Second, 3, 5)
		expect("a while after a throttled read", 40*time.Second, 40, 50)
		flowing.Store(true)
		expect("… also while there is something", 40*time.Second, 40, 52)
		time.Sleep(4 * time.Minute)
		expect("once that is forgotten", 40*time.Second, 75, 100)
		if st := f.Status(); st.Throttled != 1 || st.Failed != 0 || st.Attempt != 0 || st.Err != nil {
			t.Errorf("%+v", st)
		}
		fail.Store(true)
		time.Sleep(5 * time.Second)
		throttle.Store(true)
		time.Sleep(5 * time.Second)
		if st := f.Status(); st.Throttled != 2 || st.Failed != 1 || st.Attempt != 0 || st.Err != nil {
			t.Errorf("%+v", st)
		}
	})
}

// Failed reads count against the share, because the service may have counted them.
func TestReadsThatFailKeepToTheShare(t *testing.T) {
	for name, fault := range map[string]kinesistest.Fault{
		"failed": {Err: &kinesistest.Error{Code: "InternalFailure"}}, "expired": {Err: &kinesistest.Error{Code: "ExpiredIteratorException"}},
		"cut": {CutAfter: 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			feeding(t, kinesistest.Config{}, 1, 64*mib, func(s *fed) {
				s.put(0, 100, 100_000)
				s.srv.Control("GetRecords", func(c *kinesistest.Call) kinesistest.Fault {
					if c.N%4 != 0 { // so that pauses stay short
						return fault
					}
					return kinesistest.Fault{}
				})
				f := s.feed(0, func(p *Poll) { p.ReadShare = .1 })
				defer s.drain(f)()
				if n := s.reads(time.Minute); n > 31 || n < 20 {
					t.Errorf("%d reads in a minute, 30 are its share", n)
				}
				if st := f.Status(); st.Failed < 10 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// A pause may be longer than the scheduler's wheel can represent.
func TestALongPauseIsWaitedFor(t *testing.T) {
	feeding(t, kinesistest.Config{}, 1, 64*mib, func(s *fed) {
		s.put(0, 100, 900_000)
		defer s.drain(s.feed(0, func(p *Poll) { p.ReadShare = .005 }))()
		time.Sleep(time.Second)
		if n := s.srv.Requests("GetRecords"); n != 1 {
			t.Fatalf("%d reads", n)
		}
		if n := s.reads(5 * time.Minute); n != 0 {
			t.Errorf("%d reads before the bytes of the first one are paid for", n)
		}
		if n := s.reads(2 * time.Minute); n == 0 {
			t.Error("no read after that")
		}
	})
}

// A Poll reads a shard when fan-out is unavailable. It keeps to the share as well.
func TestAPollKeepsToTheShare(t *testing.T) {
	bubble(t, kinesistest.Config{}, func(p *polled) {
		const records, size, share = 400, 10_000, .2
		for range records {
			p.srv.Put("s", "k", make([]byte, size))
		}
		p.poll.ReadShare = share
		began, got, largest, reads := time.Now(), 0, 0, 0
		for got < records {
			page, err := p.poll.Next(p.t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got += len(page.Records)
			largest = max(largest, page.Bytes)
			reads++
			page.Release()
		}
		if largest > answerRoom(share) || largest < answerRoom(share)*9/10 {
			t.Errorf("the largest answer has %d bytes, and %d are its share", largest, answerRoom(share))
		}
		if took := time.Since(began); took < time.Duration(reads-1)*time.Second || took > 20*time.Second {
			t.Errorf("%d bytes, in %d reads, took %v", got*size, reads, took)
		}
		before := time.Now()
		if _, err := p.poll.Last(p.t.Context()); err != nil || time.Since(before) < 900*time.Millisecond {
			t.Errorf("the last read came after %v, %v", time.Since(before), err)
		}
	})
}

// A feed keeps to its share while its handler is busy, and in the read before a handoff.
func TestABusyFeedKeepsToTheShare(t *testing.T) {
	feeding(t, kinesistest.Config{}, 1, 64*mib, func(s *fed) {
		f := s.feed(0, func(p *Poll) { p.ReadShare = .5 })
		f.limit, f.hungry = 1000, false
		f.adapt(nil, taken{asked: 1000, records: 1000, bytes: 4 << 20, memory: 4 << 20})
		if f.limit != 250 {
			t.Errorf("a limit of %d after an answer that was four times too large", f.limit)
		}
		f.adapt(nil, taken{asked: 250, records: 250, bytes: 250_000, memory: 250_000})
		if f.limit != 250 {
			t.Errorf("a limit of %d although nobody waits for more", f.limit)
		}
	})
	feeding(t, kinesistest.Config{}, 1, 64*mib, func(s *fed) {
		f := s.feed(0, func(p *Poll) { p.ReadShare = .1 })
		s.put(0, 1, 100)
		s.take(f, 0, 1, 0)
		began := time.Now()
		_, err := f.Last(s.t.Context())
		if took := time.Since(began); err != nil || took < 1900*time.Millisecond || took > 2100*time.Millisecond {
			t.Errorf("the last read came after %v, %v", took, err)
		}
	})
}
