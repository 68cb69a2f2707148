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
	count  int     // feeds in the wheel
	next   int     // the tick that the pacer sleeps until
	poke   chan struct{}

	ready   feeds
	waiting int // feeds in ready
	waited  int // … that were there one tick ago

	width   int  // how many goroutines may read at once
	working int  // … are not parked
	turning int  // … have a read under way
	strain  bool // reads have waited since the width was looked at
	looked  int  // … at this tick
	parked  []chan bool
}

const (
	// tick is how far reads are gathered.
	tick = 25 * time.Millisecond
	// wheelTicks is more than twice as many as the longest interval has: the pacer sleeps for half of it at most.
	wheelTicks = 8192
	// leastWidth and mostWidth bound how many read at once. With answers after 20 ms 256 can make 12,800 reads a second.
	leastWidth, mostWidth = 4, 256
	// lookEvery is after how many ticks the width is looked at, to make it less.
	lookEvery = 40
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
	s.count++
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
	return s.waiting > 0 && s.working >= mostWidth
}

// What follows is called with the lock held, but for the goroutines.

func (s *Scheduler) start() {
	if s.wheel != nil {
		return
	}
	s.wheel = make([]feeds, wheelTicks)
	s.began, s.width, s.next = time.Now(), leastWidth, wheelTicks
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
			s.strain = true
			s.width = min(s.width+max(s.width/4, min(s.width, s.waiting/4), 1), mostWidth)
		}
		for t := s.cursor + 1; t <= min(now, s.cursor+wheelTicks-1) && s.count > 0; t++ {
			slot := &s.wheel[t%wheelTicks]
			for slot.first != nil {
				s.ready.push(slot.pop())
				s.waiting++
				s.count--
			}
		}
		s.cursor = now
		s.waited = s.waiting
	}
	s.staff()
	if now-s.looked < lookEvery {
		return
	}
	s.looked = now
	if !s.strain {
		s.width = max(s.width-max(s.width/8, 1), leastWidth)
	}
	s.strain = false
	for len(s.parked) > 0 && len(s.parked)+s.working > s.width { // those that have been so for longest
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
	if s.count > 0 {
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
	for s.working-s.turning < s.waiting && s.working < s.width {
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
	for f := (*Feed)(nil); ; {
		s.mu.Lock()
		if f != nil {
			f = nil
			s.turning--
		}
		if s.closed {
			s.mu.Unlock()
			return
		}
		if s.ready.first == nil || s.working > s.width {
			s.working--
			s.parked = append(s.parked, wake)
			s.mu.Unlock()
			if !<-wake {
				return
			}
			continue
		}
		f = s.ready.pop()
		s.waiting--
		s.turning++
		s.mu.Unlock()
		f.turn()
	}
}
