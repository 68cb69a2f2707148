package wire

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/lock"
)

const (
	// leastSilence and mostSilence limit how long no byte may arrive before a call is made a second
	// time. Within these limits the time is four times the 99th percentile of the time to the first
	// byte. It starts with mostSilence, because that percentile is not known yet.
	leastSilence = time.Second
	mostSilence  = 4 * time.Second
	// enoughAnswers is the number of answers from which on their times count.
	enoughAnswers = 20
	// firstTries is how many second attempts are available at the start, for programs that read
	// little. mostTries is how many can be saved: as many as there are connections, which can all
	// die at once.
	firstTries = 10
	mostTries  = defaultMaxConns
	// oneOf is the number of answers that save one second attempt: 5 %.
	oneOf = 20
	// tellAgain is the minimum time between two reports of second attempts.
	tellAgain = time.Minute
)

// silence decides when a call to a silent endpoint is made a second time. All calls to the endpoint
// share it. It may be used concurrently.
type silence struct {
	endpoint string
	after    atomic.Int64 // the last result of judge

	mu     lock.Mutex[lock.Silence]
	first  firstBytes
	tries  tries
	told   time.Time // time of the last report; zero before the first
	untold int       // second attempts since then
}

func newSilence(endpoint string) *silence {
	s := &silence{endpoint: endpoint, tries: tries{saved: firstTries * oneOf}}
	s.after.Store(int64(mostSilence))
	return s
}

// bound returns how long no byte may arrive before a call is made a second time; 0 means never.
func (s *silence) bound() time.Duration { return time.Duration(s.after.Load()) }

// heard records that an answer began this long after its request was sent.
func (s *silence) heard(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first.add(after)
	s.tries.answered()
	if is := int64(s.first.judge()); is != s.after.Load() {
		s.after.Store(is)
	}
}

// again takes a second attempt, if one is available.
func (s *silence) again() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.tries.take() {
		return false
	}
	s.untold++
	return true
}

// news returns the number of second attempts that were not reported yet, or 0 if it is too early
// for a report.
func (s *silence) news(now time.Time) (times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.untold > 0 && (s.told.IsZero() || now.Sub(s.told) >= tellAgain) {
		times, s.untold, s.told = s.untold, 0, now
	}
	return times
}

// tries counts the available second attempts, in units of one answer.
type tries struct{ saved int }

func (t *tries) answered() { t.saved = min(t.saved+1, mostTries*oneOf) }

func (t *tries) take() bool {
	if t.saved < oneOf {
		return false
	}
	t.saved -= oneOf
	return true
}

// firstBytes is a histogram of how long about the last thousand answers took to begin. Four sizes
// per doubling range from 2^19 ns (half a millisecond) to 2^35 ns (half a minute). The result is at
// most a quarter too large.
type firstBytes struct {
	counts [4 * (longestFirst - shortestFirst)]uint16
	all    int
}

const (
	shortestFirst = 19
	longestFirst  = 35
	// rememberedFirst is the number of answers after which an earlier answer has half of its
	// weight.
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

// sizeOf returns the size class of a time, which is at most mostOf of that class.
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

// within returns the time within which this percentage of the answers began.
func (f *firstBytes) within(percent int) time.Duration {
	rank := (f.all*percent + 99) / 100
	for i, n := range f.counts {
		if rank -= int(n); rank <= 0 {
			return mostOf(i)
		}
	}
	return 0
}

// judge returns how long no byte may arrive. It is 0 if most answers take longer than that, so that
// silence means nothing.
func (f *firstBytes) judge() time.Duration {
	switch {
	case f.all < enoughAnswers:
		return mostSilence
	case f.within(50) > mostSilence:
		return 0
	}
	return min(max(4*f.within(99), leastSilence), mostSilence)
}
