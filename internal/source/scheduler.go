package source

import (
	"sync"
	"time"
)

// Scheduler makes the reads of many feeds when they are due. All share one clock of ticks, so that ten thousand idle shards cost forty
// wake-ups a second and not ten thousand, and a few goroutines that read, so that they do not need a deep stack each. There are more of
// those while due reads wait, up to a bound that also keeps a start with many shards from becoming a storm, and less when they idle.
//
// The zero Scheduler is ready. Close it at the end, after its feeds.
type Scheduler struct {
	mu      sync.Mutex
	running sync.WaitGroup
	began   time.Time
	closed  bool
	closing chan struct{}

	wheel  []feeds // by tick; a feed is at most so many ticks away
	cursor int     // the last tick that was dealt with
	placed int     // feeds in the wheel
	next   int     // the tick that the pacer sleeps until
	poke   chan struct{}

	ready   feeds
	waiting int // feeds in ready
	waited  int // … that were there one tick ago

	width   crew // how many goroutines may read at once
	working int  // … are not parked
	turning int  // … have a read under way
	parked  []chan bool

	looked  int           // the tick at which the width was looked at
	behind  int           // ticks in a row at which due reads had waited for one
	spent   time.Duration // by all that had a read under way since the look, up to counted
	counted time.Time
}

const (
	// tick is how far reads are gathered.
	tick = 25 * time.Millisecond
	// wheelTicks is more than twice as many as the longest interval has: the pacer sleeps for half of it at most.
	wheelTicks = 8192
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

// at has a feed take its turn when it is due, to the next tick. It must not wait for one already.
func (s *Scheduler) at(f *Feed, due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.start()
	now := time.Now()
	if !due.After(now) {
		s.ready.push(f)
		s.waiting++
		s.staff()
		return
	}
	t := max(int((due.Sub(s.began)+tick-1)/tick), s.cursor+1)
	t = min(t, s.cursor+wheelTicks-1)
	s.wheel[t%wheelTicks].push(f)
	s.placed++
	if t < s.next {
		s.next = t
		s.wake()
	}
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
}

// busy reports whether due reads wait because as many as may read at once are at it.
func (s *Scheduler) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting > 0 && s.working >= int(mostWidth)
}

// What follows is called with the lock held, but for the goroutines.

func (s *Scheduler) start() {
	if s.wheel != nil {
		return
	}
	s.wheel = make([]feeds, wheelTicks)
	s.began, s.width, s.next = time.Now(), leastWidth, wheelTicks
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

// pace deals with each tick in which something is due.
func (s *Scheduler) pace() {
	timer := time.NewTimer(tick)
	defer timer.Stop()
	for {
		s.mu.Lock()
		now := int(time.Since(s.began) / tick)
		s.advance(now)
		s.next = s.upcoming()
		until := time.Until(s.began.Add(time.Duration(s.next) * tick))
		s.mu.Unlock()
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
		for t := s.cursor + 1; t <= min(now, s.cursor+wheelTicks-1) && s.placed > 0; t++ {
			slot := &s.wheel[t%wheelTicks]
			for slot.first != nil {
				s.ready.push(slot.pop())
				s.waiting++
				s.placed--
			}
		}
		s.cursor = now
		s.waited = s.waiting
	}
	if now-s.looked >= lookEvery {
		s.look(now)
	}
	s.staff()
}

// look adjusts how many may read.
func (s *Scheduler) look(now int) {
	s.count(0)
	length := time.Duration(now-s.looked) * tick
	s.width = s.width.adjust(look{s.behind >= lookEvery, float64(s.spent) / float64(length)})
	s.looked, s.spent = now, 0
	for len(s.parked) > 0 && len(s.parked)+s.working > int(s.width) { // those that have been so for longest
		s.parked[0] <- false
		s.parked = append(s.parked[:0], s.parked[1:]...)
	}
}

// upcoming is the next tick in which there is something to do.
func (s *Scheduler) upcoming() int {
	if s.waiting > 0 {
		return s.cursor + 1
	}
	far := s.cursor + wheelTicks/2
	if s.width > leastWidth {
		far = max(s.looked+lookEvery, s.cursor+1)
	}
	if s.placed > 0 {
		for t := s.cursor + 1; t < far; t++ {
			if s.wheel[t%wheelTicks].first != nil {
				return t
			}
		}
	}
	return far
}

// staff has goroutines read what is ready, as many as may.
func (s *Scheduler) staff() {
	for s.working-s.turning < s.waiting && s.working < int(s.width) {
		s.working++
		if last := len(s.parked) - 1; last >= 0 {
			s.parked[last] <- true
			s.parked = s.parked[:last]
			continue
		}
		s.running.Go(s.read)
	}
	if s.working-s.turning < s.waiting && s.next > s.cursor+1 {
		s.next = s.cursor + 1 // to see whether they are enough
		s.wake()
	}
}

// read makes reads as long as some are due.
func (s *Scheduler) read() {
	wake := make(chan bool, 1)
	var l lane
	defer l.close()
	for f := (*Feed)(nil); ; {
		s.mu.Lock()
		if f != nil {
			f = nil
			s.count(-1)
		}
		if s.closed {
			s.mu.Unlock()
			return
		}
		if s.ready.first == nil || s.working > int(s.width) {
			s.working--
			s.parked = append(s.parked, wake)
			s.mu.Unlock()
			l.park()
			if !<-wake {
				return
			}
			continue
		}
		f = s.ready.pop()
		s.waiting--
		s.count(1)
		s.mu.Unlock()
		f.turn(&l)
	}
}

// count notes that so many more have a read under way.
func (s *Scheduler) count(more int) {
	now := time.Now()
	s.spent += time.Duration(s.turning) * now.Sub(s.counted)
	s.counted = now
	s.turning += more
}
