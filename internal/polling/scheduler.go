package polling

import (
	"sync"
	"time"

	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/mono"
)

// Scheduler starts the reads of many feeds when they are due. All feeds share one clock of ticks,
// so that ten thousand idle shards cost forty wake-ups per second and not ten thousand. They also
// share a few goroutines, so that each feed needs no stack of its own. Reads that are due together
// are made in waves if their answers will probably be empty.
//
// While due reads wait, the Scheduler increases the number of concurrent reads up to a limit. The
// limit also prevents a burst when many shards start. While shards are idle, it reduces the number.
//
// The zero Scheduler is ready to use. Close it after its feeds.
type Scheduler struct {
	mu      lock.Mutex[lock.Scheduler]
	running sync.WaitGroup
	began   mono.Time
	closed  bool
	closing chan struct{}

	wheel  wheel
	cursor int           // the last processed tick
	next   int           // the tick until which the pacer sleeps
	poke   chan struct{} // nil until the pacer runs

	ready   feeds
	waiting int // feeds in ready
	light   int // feeds in ready that can be part of a wave
	waited  int // feeds in ready that were already there one tick ago

	width  crew // maximum number of concurrent reads
	flying int  // reads in progress; reads of a wave count one by one
	ending int  // reads that ended in this tick
	ended  int  // reads that ended in the previous tick
	coming int  // goroutines that were woken to read and have not started
	parked []chan bool
	spare  int // minimum number of parked goroutines since the last look

	conns    []*conn // free conns, the most recently used last
	waves    []*wave // finished waves for reuse
	underWay []*wave // waves with reads whose answers no goroutine waits for yet
	late     []*wave // waves that wait for another goroutine

	looked  int           // the tick of the last adjustment of the width
	behind  int           // consecutive ticks in which a due read had waited for a whole tick
	spent   time.Duration // summed duration of all reads since the last look, up to counted
	counted mono.Time
}

const (
	// tick is the period over which due reads are collected.
	tick = 25 * time.Millisecond
	// leastParked is the number of goroutines that stay parked when there is nothing to do.
	leastParked = 4
)

// feeds is a linked list of feeds.
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

// unpop returns a feed to the front of the list after pop.
func (l *feeds) unpop(f *Feed) {
	if f.after = l.first; l.first == nil {
		l.last = f
	}
	l.first = f
}

// at schedules the turn of a feed. The time is due, rounded up to a tick, or now if due is zero.
// The feed must not be scheduled already.
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

// Close stops the goroutines and waits for them.
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
	for _, l := range s.conns {
		l.close()
	}
	s.conns = nil
}

// busy reports whether due reads wait because the maximum number of reads is in progress.
func (s *Scheduler) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting > 0 && s.flying >= int(mostWidth)
}

// The caller of the following methods holds the lock. The exception is pace, which runs as a
// goroutine.

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

// by makes the pacer wake at tick t or earlier.
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

// pace processes each tick that has something to do.
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

// advance moves reads that are due by tick now to ready, and adjusts the number of goroutines.
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

// look adjusts the maximum number of concurrent reads, and ends some of the unneeded goroutines.
func (s *Scheduler) look(now int) {
	s.count(0, mono.Now())
	length := time.Duration(now-s.looked) * tick
	s.width = s.width.adjust(look{s.behind >= lookEvery, float64(s.spent) / float64(length)})
	s.looked, s.spent = now, 0
	// Begin with the goroutines that were idle longest.
	for n := (s.spare + 3) / 4; n > 0 && len(s.parked) > leastParked; n-- {
		s.parked[0] <- false
		s.parked = append(s.parked[:0], s.parked[1:]...)
	}
	s.spare = len(s.parked)
}

// upcoming returns the next tick that has something to do.
func (s *Scheduler) upcoming() int {
	if s.waiting > 0 || len(s.underWay) > 0 {
		return s.cursor + 1
	}
	far := s.cursor + wheelTicks/2
	if s.width > leastWidth || len(s.parked) > leastParked {
		far = max(s.looked+lookEvery, s.cursor+1)
	}
	if len(s.conns) > 0 {
		far = min(far, max(s.conns[0].used+unusedTicks, s.cursor+1))
	}
	return s.wheel.next(s.cursor+1, far)
}

// count adds more to the number of reads in progress. more may be negative.
func (s *Scheduler) count(more int, now mono.Time) {
	s.spent += time.Duration(s.flying) * now.Sub(s.counted)
	s.counted = now
	s.flying += more
}
