package group

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// parking is a term whose reader parks until it must return.
type parking struct {
	*Term
	validity *validity
	began    atomic.Int32 // how often the reader was started or resumed
	running  atomic.Int32
	gone     atomic.Bool
}

// resumed is a reader whose Resume calls the function.
type resumed func() error

func (r resumed) Resume() error { return r() }

func newParking() *parking {
	p := &parking{validity: newValidity(5 * time.Second)}
	p.validity.extend(time.Now())
	p.Term = newTerm(lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 2, Position: shard.Oldest}, p.validity, func() {})
	p.Term.gone = func() { p.gone.Store(true) }
	return p
}

func (p *parking) read() error {
	p.began.Add(1)
	defer p.running.Add(-1)
	if p.running.Add(1) > 1 {
		panic("two readers at once")
	}
	if p.Reading().Err() != nil {
		return nil
	}
	return p.Park(resumed(p.read))
}

func TestWhatWakesAParkedReader(t *testing.T) {
	for _, c := range []struct {
		name    string
		do      func(*parking)
		returns bool
		cause   error // of Context
	}{
		{"something to handle", func(p *parking) { p.Wake() }, false, nil},
		{"the lease is wanted back", func(p *parking) { p.drain() }, true, context.Canceled},
		{"it is released", func(p *parking) { p.GiveUp(nil) }, true, context.Canceled},
		{"it is released with a cause", func(p *parking) { p.GiveUp(context.DeadlineExceeded) }, true, context.DeadlineExceeded},
		{"it is abandoned", func(p *parking) { p.Abandon() }, true, context.Canceled},
		{"the lease is lost", func(p *parking) { p.lose() }, true, ErrLeaseLost},
		{"the validity of the lease is ended", func(p *parking) { p.validity.end(ErrStopping) }, true, ErrStopping},
		{"the lease expires", func(*parking) { time.Sleep(5 * time.Second) }, true, ErrLeaseLost},
		{"nothing", func(*parking) { time.Sleep(4 * time.Second) }, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newParking()
				go p.run(p.read)
				synctest.Wait()
				if p.began.Load() != 1 || p.running.Load() != 0 || p.gone.Load() {
					t.Fatalf("begun %d times, %d run: it does not park", p.began.Load(), p.running.Load())
				}
				c.do(p)
				synctest.Wait()
				if p.gone.Load() != c.returns || p.returned != c.returns || !errors.Is(context.Cause(p.Context()), c.cause) {
					t.Errorf("it returned: %t, with %v", p.gone.Load(), context.Cause(p.Context()))
				}
				if n, want := p.began.Load(), int32(2); (n == want) != (c.name != "nothing") {
					t.Errorf("it was begun %d times", n)
				}
				if _, known := p.validity.terms[p.Term]; known == c.returns {
					t.Errorf("the end of the validity wakes it: %t", known)
				}
				p.validity.end(ErrLeaseLost)
				synctest.Wait()
				if !p.gone.Load() {
					t.Error("it has not returned")
				}
				n := p.began.Load()
				p.Wake()
				synctest.Wait()
				if p.began.Load() != n {
					t.Error("it was begun again after it had returned")
				}
			})
		})
	}
}

func TestAReaderThatIsWokenWhileItParksGoesOn(t *testing.T) {
	for _, meanwhile := range []func(*parking){func(p *parking) { p.Wake() }, func(p *parking) { p.drain() }, func(p *parking) { p.lose() }} {
		synctest.Test(t, func(t *testing.T) {
			p := newParking()
			go p.run(func() error {
				meanwhile(p)
				return p.Park(resumed(p.read))
			})
			synctest.Wait()
			if p.began.Load() != 1 {
				t.Errorf("it went on %d times", p.began.Load())
			}
			p.validity.end(nil)
		})
	}
}

// The context that Reading returns reports the current state, whether or not a goroutine waits for
// it. A call of its method Err allocates nothing.
func TestReadingIsMadeWhenSomebodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParking()
		reading := p.Reading()
		if reading.Err() != nil || context.Cause(reading) != nil {
			t.Errorf("it has ended: %v", context.Cause(reading))
		}
		child, cancel := context.WithTimeout(reading, time.Hour)
		defer cancel()
		p.drain()
		<-child.Done()
		<-reading.Done()
		if child.Err() != context.Canceled || reading.Err() != context.Canceled || p.Context().Err() != nil {
			t.Errorf("%v, %v, %v after the lease was wanted back", child.Err(), reading.Err(), p.Context().Err())
		}

		p = newParking()
		p.lose()
		reading = p.Reading()
		if reading.Err() != context.Canceled || !errors.Is(context.Cause(reading), ErrLeaseLost) {
			t.Errorf("%v, %v of a lease that was lost", reading.Err(), context.Cause(reading))
		}
		if n := testing.AllocsPerRun(10, func() { _ = p.Reading().Err() }); n != 0 {
			t.Errorf("%v allocations to ask whether it has ended", n)
		}
	})
}

// Wake, parking and the end of the term may coincide in any way. No wake is lost, there are never
// two readers, and the reader returns once.
func TestNoWakeIsLost(t *testing.T) {
	for range 200 {
		p := newParking()
		var todo, did atomic.Int32
		all, ended := make(chan struct{}), make(chan struct{})
		p.Term.gone = func() { close(ended) }
		var read func() error
		read = func() error {
			defer p.running.Add(-1)
			if p.running.Add(1) > 1 {
				t.Error("two readers at once")
			}
			if n := todo.Swap(0); n > 0 && did.Add(n) == 100 {
				close(all)
			}
			if p.Reading().Err() != nil {
				return nil
			}
			return p.Park(resumed(read))
		}
		go p.run(read)
		for range 4 {
			go func() {
				for range 25 {
					todo.Add(1)
					p.Wake()
				}
			}()
		}
		for _, end := range []struct {
			of   chan struct{}
			next func()
		}{{all, func() { go p.Wake(); go p.drain(); p.Wake() }}, {ended, func() { p.validity.end(nil) }}} {
			select {
			case <-end.of:
				end.next()
			case <-time.After(10 * time.Second):
				t.Fatalf("stuck: %d of 100 were done", did.Load())
			}
		}
	}
}

// A reader that calls runtime.Goexit ends the term, even if it was woken before it was parked.
func TestAGoroutineThatEndsItselfWhileItGoesOnEndsTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParking()
		go p.run(func() error {
			p.Wake()
			return p.Park(resumed(func() error {
				runtime.Goexit()
				return nil
			}))
		})
		synctest.Wait()
		if s := p.state(); !s.returned || !errors.Is(s.err, errGone) {
			t.Errorf("the term is %+v", s)
		}
		p.validity.end(nil)
	})
}

// A caller that waits for a saved position gets an error if the lease is released first.
func TestGivenBackWithoutWhatIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParking()
		saved := make(chan error, 1)
		at, err := shard.After("5")
		if err != nil {
			t.Fatal(err)
		}
		go func() { saved <- p.Save(t.Context(), at) }()
		synctest.Wait()
		began := time.Now()
		p.settle(lease.Progress{Release: true}, false)
		if err := <-saved; !errors.Is(err, ErrLeaseLost) || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		p.validity.end(nil)
	})
}

// A handler that calls runtime.Goexit ends the term, even if the reader was parked before.
func TestAGoroutineThatEndsItselfAfterParkingEndsTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParking()
		go p.run(func() error {
			return p.Park(resumed(func() error {
				runtime.Goexit()
				return nil
			}))
		})
		synctest.Wait()
		p.Wake()
		synctest.Wait()
		if s := p.state(); !s.returned || s.err == nil || errors.Is(s.err, errParked) {
			t.Errorf("the term is %+v", s)
		}
		p.validity.end(nil)
	})
}
