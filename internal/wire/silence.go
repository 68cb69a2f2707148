package wire

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/lock"
)

const (
	// A call is given up as silent, and made a second time, when no byte has come for four times
	// what 99 of 100 answers take to begin, within these. At first it is mostSilence: what an
	// answer takes is not known yet.
	leastSilence = time.Second
	mostSilence  = 4 * time.Second
	// enoughAnswers is how many have to have begun before it counts how long that took.
	enoughAnswers = 20
	// firstTries is how many second tries there may be before anything is saved, for who reads
	// little; mostTries is how many are saved at most: as many connections as there may be, which
	// can all die at once.
	firstTries = 10
	mostTries  = defaultMaxConns
	// oneOf is how many answers it takes to save one second try: 5 %.
	oneOf = 20
	// tellAgain is how long one message about second tries has to do.
	tellAgain = time.Minute
)

// silence decides when an endpoint that says nothing is asked a second time. All calls to the
// endpoint share it. It may be used concurrently.
type silence struct {
	endpoint string
	after    atomic.Int64 // what judge said last

	mu     lock.Mutex[lock.Silence]
	first  firstBytes
	tries  tries
	told   time.Time // when somebody was last told; zero for never
	untold int       // second tries since then
}

func newSilence(endpoint string) *silence {
	s := &silence{endpoint: endpoint, tries: tries{saved: firstTries * oneOf}}
	s.after.Store(int64(mostSilence))
	return s
}

// bound is how long no byte may come before a call is made a second time; 0 if it is not.
func (s *silence) bound() time.Duration { return time.Duration(s.after.Load()) }

// heard notes that an answer has begun so long after its request was sent.
func (s *silence) heard(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first.add(after)
	s.tries.answered()
	if is := int64(s.first.judge()); is != s.after.Load() {
		s.after.Store(is)
	}
}

// again takes a second try, if one is left.
func (s *silence) again() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.tries.take() {
		return false
	}
	s.untold++
	return true
}

// news is how many second tries were taken that nobody has been told of; 0 if it is too early for
// that.
func (s *silence) news(now time.Time) (times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.untold > 0 && (s.told.IsZero() || now.Sub(s.told) >= tellAgain) {
		times, s.untold, s.told = s.untold, 0, now
	}
	return times
}

// tries is how many second tries may be made, in parts of which one answer saves one.
type tries struct{ saved int }

func (t *tries) answered() { t.saved = min(t.saved+1, mostTries*oneOf) }

func (t *tries) take() bool {
	if t.saved < oneOf {
		return false
	}
	t.saved -= oneOf
	return true
}

// firstBytes is how long the last thousand or so answers took to begin. There are four sizes for
// each doubling, from 2^19 ns (half a millisecond) to 2^35 (half a minute): what is said of them
// is at most a quarter too much.
type firstBytes struct {
	counts [4 * (longestFirst - shortestFirst)]uint16
	all    int
}

const (
	shortestFirst = 19
	longestFirst  = 35
	// rememberedFirst is after how many answers each counts half.
	rememberedFirst = 1024
)

func (f *firstBytes) add(d time.Duration) {
	f.counts[sizeOf(d)]++
	if f.all++; f.all < rememberedFirst {
		return
	}
	f.all = 0
	for i := range f.counts {
		f.counts[i] /= 2
		f.all += int(f.counts[i])
	}
}

// sizeOf is the size that a time belongs to, which is at most mostOf of that.
func sizeOf(d time.Duration) int {
	n := uint64(max(d, 1) - 1)
	top := bits.Len64(n) - 1 // the highest bit
	switch {
	case top < shortestFirst:
		return 0
	case top >= longestFirst:
		return len(firstBytes{}.counts) - 1
	}
	return 4*(top-shortestFirst) + int(n>>(top-2)&3)
}

func mostOf(size int) time.Duration {
	return time.Duration(5+size%4) << (shortestFirst + size/4 - 2)
}

// within is how long it took at most, in that part of all cases.
func (f *firstBytes) within(percent int) time.Duration {
	rank := (f.all*percent + 99) / 100
	for i, n := range f.counts {
		if rank -= int(n); rank <= 0 {
			return mostOf(i)
		}
	}
	return 0
}

// judge is how long no byte may come; 0 if silence says nothing, because most answers take longer
// than that.
func (f *firstBytes) judge() time.Duration {
	switch {
	case f.all < enoughAnswers:
		return mostSilence
	case f.within(50) > mostSilence:
		return 0
	}
	return min(max(4*f.within(99), leastSilence), mostSilence)
}
