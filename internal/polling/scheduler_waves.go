package polling

import (
	"slices"

	"github.com/weir-go/weir/internal/mono"
)

// wave is a set of reads that are made together. First all requests are sent, each on its own conn.
// Then the answers are taken one after the other. Most answers have arrived by then, so a wave
// waits once, not once per read. This saves time, because waiting and waking cost more than a small
// answer.
//
// One goroutine takes the answers of a wave in order. If one answer is late or takes long to
// deliver, the answers behind it must not wait. After two ticks another goroutine continues behind
// the late answer, after two more ticks two goroutines, and so on. If a request cannot be sent
// without waiting, its read is the last of the wave.
type wave struct {
	feeds [waveSize]*Feed // the first size feeds have reads in progress
	conns [waveSize]*conn // one for each feed

	// The scheduler's lock guards these fields.
	size  int
	taken int // the number of answers that goroutines wait for or have taken
	left  int // reads that have not ended
	moved int // the tick at which the last answer was taken
}

const (
	// waveSize is the maximum number of reads in a wave. A wave of 128 would not make a read
	// cheaper, and each read needs its own connection.
	waveSize = 64
	// patientTicks is the number of ticks that reads wait behind a late read. Then they get another
	// goroutine.
	patientTicks = 2
	// slow is the minimum duration of a slow read. After a slow read, the feed's next read is not
	// part of a wave, because it would delay the wave.
	slow = 10 * tick
	// unusedTicks is the number of ticks after which an unused conn is removed.
	unusedTicks = 40
)

// read is a goroutine that makes reads while reads are due, and then parks.
func (s *Scheduler) read() {
	wake := make(chan bool, 1)
	s.mu.Lock()
	for s.turns() {
		s.parked = append(s.parked, wake)
		s.mu.Unlock()
		if !<-wake {
			return
		}
		s.mu.Lock()
	}
	s.mu.Unlock()
}

// The caller of the following methods holds the lock.

// turns makes reads until no read is due. It returns false if the scheduler is closed.
func (s *Scheduler) turns() bool {
	s.coming--
	for !s.closed {
		w, asked := s.nextWave()
		if w == nil {
			return true
		}
		if !asked {
			s.ask(w)
		}
		for s.take(w) {
		}
	}
	return false
}

// nextWave returns a wave whose reads wait for a goroutine, or else a new wave of due reads. It
// returns nil if there is neither.
func (s *Scheduler) nextWave() (w *wave, asked bool) {
	if len(s.late) > 0 {
		w = s.late[0]
		s.late = slices.Delete(s.late, 0, 1)
		return w, true
	}
	heavy, light := s.room()
	room := min(waveSize, light)
	if s.waiting > 0 && !s.ready.first.light {
		room = min(1, heavy)
	}
	if room <= 0 || s.waiting == 0 {
		return nil, false
	}
	if n := len(s.waves); n > 0 {
		w, s.waves = s.waves[n-1], s.waves[:n-1]
	} else {
		w = new(wave)
	}
	for n := 0; n < room && s.waiting > 0 && (n == 0 || s.ready.first.light); n++ {
		f := s.ready.pop()
		s.waiting--
		w.feeds[n], w.conns[n], w.left = f, s.conn(), n+1
		if !f.light {
			break
		}
		s.light--
	}
	s.count(w.left, mono.Now())
	return w, false
}

// ask sends the requests of a wave. A request that cannot be sent without waiting ends the wave.
// The reads behind it go back to the list.
func (s *Scheduler) ask(w *wave) {
	most := w.left
	s.mu.Unlock()
	n, begun := 0, 0
	for asked := true; asked && begun < most; begun++ {
		if f, l := w.feeds[begun], w.conns[n]; f.begin(l) {
			asked = most > 1 && f.ask(l)
			w.feeds[n] = f
			n++
		}
	}
	s.mu.Lock()
	now := mono.Now()
	s.count(n-most, now)
	for i := most - 1; i >= begun; i-- {
		s.ready.unpop(w.feeds[i])
		s.waiting++
		s.light++
	}
	for i := n; i < most; i++ {
		s.free(w.conns[i], now)
		w.feeds[i], w.conns[i] = nil, nil
	}
	w.size, w.left, w.moved = n, n, s.tickOf(now)
	if n == 0 {
		s.land(w)
	}
	if n > 1 {
		s.underWay = append(s.underWay, w)
		s.by(w.moved + patientTicks)
	}
	if begun < most {
		s.staff()
	}
}

// take takes the next answer of a wave. It returns false if there is no further answer.
func (s *Scheduler) take(w *wave) bool {
	if w.taken == w.size {
		return false
	}
	i := w.taken
	w.taken++
	f, l := w.feeds[i], w.conns[i]
	s.mu.Unlock()
	f.finish(l)
	s.mu.Lock()
	now := mono.Now()
	s.count(-1, now)
	s.ending++
	s.free(l, now)
	w.feeds[i], w.conns[i] = nil, nil
	w.moved = s.tickOf(now)
	if w.left--; w.left == 0 {
		s.land(w)
		return false
	}
	return true
}

// land keeps a finished wave for reuse.
func (s *Scheduler) land(w *wave) {
	*w = wave{}
	s.waves = append(s.waves, w)
	if i := slices.Index(s.underWay, w); i >= 0 {
		s.underWay = slices.Delete(s.underWay, i, i+1)
	}
}

// conn returns the most recently used free conn, or a new one.
func (s *Scheduler) conn() *conn {
	n := len(s.conns) - 1
	if n < 0 {
		return new(conn)
	}
	l := s.conns[n]
	s.conns[n] = nil
	s.conns = s.conns[:n]
	return l
}

// free keeps a conn for later reads.
func (s *Scheduler) free(l *conn, now mono.Time) {
	l.reset(s.tickOf(now))
	s.conns = append(s.conns, l)
}

func (s *Scheduler) tickOf(now mono.Time) int { return int(now.Sub(s.began) / tick) }

// mind doubles the number of goroutines that wait for the answers of a wave, for each wave that has
// not moved for patientTicks. If all answers are late, the last read therefore does not wait for
// each read before it.
func (s *Scheduler) mind(now int) {
	for _, w := range s.underWay {
		if w.taken < w.size && now-w.moved >= patientTicks {
			w.moved = now
			wait := w.taken - (w.size - w.left)
			for range min(max(wait, 1), w.size-w.taken) {
				s.late = append(s.late, w)
			}
		}
	}
	s.underWay = slices.DeleteFunc(s.underWay, func(w *wave) bool { return w.taken == w.size })
}

// unused removes and returns the conns that were not used for unusedTicks.
func (s *Scheduler) unused(now int) []*conn {
	n := 0
	for n < len(s.conns) && now-s.conns[n].used >= unusedTicks {
		n++
	}
	if n == 0 {
		return nil
	}
	old := slices.Clone(s.conns[:n])
	s.conns = slices.Delete(s.conns, 0, n)
	return old
}

// room returns how many reads may begin, and how many of them in waves. While many reads end, a
// wave waits until several reads fit. Otherwise each read that ends would start its own wave.
func (s *Scheduler) room() (all, waves int) {
	all = max(int(s.width)-s.flying, 0)
	if all < min(waveSize/2, s.light, int(s.width)/2) && s.ended >= waveSize {
		return all, 0
	}
	return all, all
}

// staff wakes goroutines for the due reads, as many as the width allows.
func (s *Scheduler) staff() {
	heavy, light := s.room()
	room := heavy
	heavy = min(s.waiting-s.light, heavy)
	need := len(s.late) + heavy + (min(s.light, max(light-heavy, 0))+waveSize-1)/waveSize
	for s.coming < need {
		s.coming++
		if last := len(s.parked) - 1; last >= 0 {
			s.parked[last] <- true
			s.parked = s.parked[:last]
			s.spare = min(s.spare, last)
			continue
		}
		s.running.Go(s.read)
	}
	if s.waiting > room {
		s.by(s.cursor + 1) // to check whether they are enough
	}
}
