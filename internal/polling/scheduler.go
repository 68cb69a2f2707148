package polling

import (
	"sync"
	"time"

	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/mono"
)

// Scheduler makes the reads of many feeds when they are due. All feeds share one clock of ticks, so
// that ten thousand idle shards cost forty wake-ups per second instead of ten thousand. They also
// share a few goroutines for reading, so that feeds need no deep stacks. Reads that are due
// together and probably bring nothing are made in waves. While due reads wait, more are made at
// once, up to a limit that also prevents a burst at a start with many shards. While the shards are
// idle, fewer are made at once.
//
// The zero Scheduler is ready to use. Close it after its feeds.
type Scheduler struct {
	mu      lock.Mutex[lock.Scheduler]
	running sync.WaitGroup
	began   mono.Time
	closed  bool
	closing chan struct{}

	wheel  wheel
	cursor int           // the last tick that was processed
	next   int           // the tick until which the pacer sleeps
	poke   chan struct{} // nil until there is a pacer

	ready   feeds
	waiting int // feeds in ready
	light   int // those of them that can be part of a wave
	waited  int // feeds in ready that were there one tick ago

	width  crew // how many reads may be under way at once
	flying int  // reads under way; those of a wave all count until each is over
	ending int  // reads that ended in this tick
	ended  int  // reads that ended in the tick before
	coming int  // goroutines that were woken to read and have not begun
	parked []chan bool
	spare  int // minimum of parked goroutines since the last look

	lanes    []*lane // free lanes, the most recently used last
	waves    []*wave // finished waves for reuse
	underWay []*wave // waves with reads that no goroutine waits for yet
	late     []*wave // waves that wait for their own goroutine

	looked  int           // the tick of the last look at the width
	behind  int           // consecutive ticks at which due reads had waited for one tick
	spent   time.Duration // by all reads under way since the last look, up to counted
	counted mono.Time
}

const (
	// tick is the period over which due reads are collected.
	tick = 25 * time.Millisecond
	// leastParked is how many goroutines stay when there is nothing to do.
	leastParked = 4
)

// feeds is a linked list.
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

// at schedules the turn of a feed for due, rounded up to a tick, or at once if due is zero. The
// feed must not be scheduled already.
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

// busy reports whether due reads wait because the maximum number of reads is under way.
func (s *Scheduler) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting > 0 && s.flying >= int(mostWidth)
}

// The following methods are called with the lock held, except the goroutines.

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

// by makes the pacer wake at tick t at the latest.
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

// pace processes each tick in which something is due.
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

// advance makes the reads ready that are due up to tick now, and adjusts the number of readers.
func (s *Scheduler) advance(now int) {
	if now > s.cursor {
		if s.waiting > 0 && s.waited > 0 { // a read has waited for a whole tick
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

// look adjusts how many reads may be under way, and ends unneeded goroutines step by step.
func (s *Scheduler) look(now int) {
	s.count(0, mono.Now())
	length := time.Duration(now-s.looked) * tick
	s.width = s.width.adjust(look{s.behind >= lookEvery, float64(s.spent) / float64(length)})
	s.looked, s.spent = now, 0
	// the ones that were idle longest
	for n := (s.spare + 3) / 4; n > 0 && len(s.parked) > leastParked; n-- {
		s.parked[0] <- false
		s.parked = append(s.parked[:0], s.parked[1:]...)
	}
	s.spare = len(s.parked)
}

// upcoming returns the next tick in which there is something to do.
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

// count records that more reads are under way, or fewer if more is negative.
func (s *Scheduler) count(more int, now mono.Time) {
	s.spent += time.Duration(s.flying) * now.Sub(s.counted)
	s.counted = now
	s.flying += more
}
