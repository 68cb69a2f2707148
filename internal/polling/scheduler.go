package polling

import (
	"sync"
	"time"

	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/mono"
)

// Scheduler makes the reads of many feeds when they are due. All share one clock of ticks, so that
// ten thousand idle shards cost forty wake-ups a second and not ten thousand, and a few goroutines
// that read, so that they do not need a deep stack each. What is due together and probably brings
// nothing is read in waves. More reads are made at once while due ones wait, up to a bound that
// also keeps a start with many shards from becoming a storm, and less when they idle.
//
// The zero Scheduler is ready. Close it at the end, after its feeds.
type Scheduler struct {
	mu      lock.Mutex[lock.Scheduler]
	running sync.WaitGroup
	began   mono.Time
	closed  bool
	closing chan struct{}

	wheel  wheel
	cursor int           // the last tick that was dealt with
	next   int           // the tick that the pacer sleeps until
	poke   chan struct{} // nil until there is a pacer

	ready   feeds
	waiting int // feeds in ready
	light   int // … of which so many can be part of a wave
	waited  int // feeds in ready that were there one tick ago

	width  crew // how many reads may be under way at once
	flying int  // … are; a wave's all count until each is over
	ending int  // … have ended in this tick
	ended  int  // … in the tick before
	coming int  // goroutines that were woken to read and have not begun
	parked []chan bool
	spare  int // the least that were parked since the look

	lanes    []*lane // that are free; the one that was used last at the end
	waves    []*wave // that are over, to be used again
	underWay []*wave // with reads that nobody waits for yet
	late     []*wave // … that wait for a goroutine of their own

	looked  int           // the tick at which the width was looked at
	behind  int           // ticks in a row at which due reads had waited for one
	spent   time.Duration // by all reads that were under way since the look, up to counted
	counted mono.Time
}

const (
	// tick is how far reads are gathered.
	tick = 25 * time.Millisecond
	// leastParked is how many goroutines stay when there is nothing to do.
	leastParked = 4
)

// feeds is a list.
type feeds struct{ first, last *Feed }

func (l *feeds) push(f *Feed) {
	f.after = nil
	if l.first == nil {
		l.first = f
	} else {
		l.last.after = f
	}
	l.last = f
}

func (l *feeds) pop() *Feed {
	f := l.first
	l.first, f.after = f.after, nil
	return f
}

// unpop undoes a pop.
func (l *feeds) unpop(f *Feed) {
	if f.after = l.first; l.first == nil {
		l.last = f
	}
	l.first = f
}

// at has a feed take its turn when it is due, to the next tick; at once when that is zero. It must
// not wait for one already.
func (s *Scheduler) at(f *Feed, due mono.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.start()
	t := 0
	if !due.IsZero() {
		t = int((due.Sub(s.began) + tick - 1) / tick)
	}
	if t <= s.cursor || t < s.next && due <= mono.Now() {
		s.queue(f)
		s.staff()
		return
	}
	t = min(t, s.cursor+wheelTicks-1)
	s.wheel.place(f, t)
	s.by(t)
}

// Close ends the goroutines and waits for them.
func (s *Scheduler) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		if s.closing != nil {
			close(s.closing)
		}
		for _, p := range s.parked {
			p <- false
		}
		s.parked = nil
	}
	s.mu.Unlock()
	s.running.Wait()
	for _, l := range s.lanes {
		l.close()
	}
	s.lanes = nil
}

// busy reports whether due reads wait because as many as may read at once are at it.
func (s *Scheduler) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting > 0 && s.flying >= int(mostWidth)
}

// What follows is called with the lock held, but for the goroutines.

func (s *Scheduler) start() {
	if s.poke != nil {
		return
	}
	s.began, s.width, s.next = mono.Now(), firstWidth, wheelTicks
	s.counted = s.began
	s.poke, s.closing = make(chan struct{}, 1), make(chan struct{})
	s.running.Go(s.pace)
}

func (s *Scheduler) wake() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

// by has the pacer wake at a tick, if not before.
func (s *Scheduler) by(t int) {
	if s.next > t {
		s.next = t
		s.wake()
	}
}

func (s *Scheduler) queue(f *Feed) {
	s.ready.push(f)
	s.waiting++
	if f.light {
		s.light++
	}
}

// pace deals with each tick in which something is due.
func (s *Scheduler) pace() {
	timer := time.NewTimer(tick)
	defer timer.Stop()
	for {
		s.mu.Lock()
		now := s.tickOf(mono.Now())
		s.advance(now)
		unused := s.unused(now)
		s.next = s.upcoming()
		until := mono.Until(s.began.Add(time.Duration(s.next) * tick))
		s.mu.Unlock()
		for _, l := range unused {
			l.close()
		}
		timer.Reset(until)
		select {
		case <-timer.C:
		case <-s.poke:
		case <-s.closing:
			return
		}
	}
}

// advance makes ready what is due up to the tick now, and minds how many read.
func (s *Scheduler) advance(now int) {
	if now > s.cursor {
		if s.waiting > 0 && s.waited > 0 { // nobody came to what has waited for a tick
			s.behind++
		} else {
			s.behind = 0
		}
		end := min(now, s.cursor+wheelTicks-1) + 1
		for t := s.wheel.next(s.cursor+1, end); t < end; t = s.wheel.next(t+1, end) {
			s.wheel.take(t, s.queue)
		}
		s.cursor = now
		s.waited = s.waiting
		s.ended, s.ending = s.ending, 0
		s.mind(now)
	}
	if now-s.looked >= lookEvery {
		s.look(now)
	}
	s.staff()
}

// look adjusts how many may read, and lets goroutines go that were not needed, step by step.
func (s *Scheduler) look(now int) {
	s.count(0, mono.Now())
	length := time.Duration(now-s.looked) * tick
	s.width = s.width.adjust(look{s.behind >= lookEvery, float64(s.spent) / float64(length)})
	s.looked, s.spent = now, 0
	// those that have been so for longest
	for n := (s.spare + 3) / 4; n > 0 && len(s.parked) > leastParked; n-- {
		s.parked[0] <- false
		s.parked = append(s.parked[:0], s.parked[1:]...)
	}
	s.spare = len(s.parked)
}

// upcoming is the next tick in which there is something to do.
func (s *Scheduler) upcoming() int {
	if s.waiting > 0 || len(s.underWay) > 0 {
		return s.cursor + 1
	}
	far := s.cursor + wheelTicks/2
	if s.width > leastWidth || len(s.parked) > leastParked {
		far = max(s.looked+lookEvery, s.cursor+1)
	}
	if len(s.lanes) > 0 {
		far = min(far, max(s.lanes[0].used+unusedTicks, s.cursor+1))
	}
	return s.wheel.next(s.cursor+1, far)
}

// count notes that so many more reads are under way.
func (s *Scheduler) count(more int, now mono.Time) {
	s.spent += time.Duration(s.flying) * now.Sub(s.counted)
	s.counted = now
	s.flying += more
}
