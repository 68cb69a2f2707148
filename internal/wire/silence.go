package wire

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/lock"
)

const (
	// leastSilence and mostSilence are the limits of the time without a received byte before a call
	// is retried. Between these limits, the time is four times the 99th percentile of the time to
	// the first byte. It is mostSilence until that percentile is known.
	leastSilence = time.Second
	mostSilence  = 4 * time.Second
	// enoughAnswers is the minimum number of answers for the percentile.
	enoughAnswers = 20
	// firstTries is the initial number of available retries, for programs that make few calls.
	// mostTries is the maximum. It equals the default maximum of connections, because all of them
	// can die at once.
	firstTries = 10
	mostTries  = defaultMaxConns
	// oneOf is the number of answers that earn one retry. Retries are thus limited to 5% of calls.
	oneOf = 20
	// tellAgain is the minimum time between two reports of retries.
	tellAgain = time.Minute
)

// silence decides when a call to a silent endpoint is retried. All calls to the endpoint share it.
// It may be used concurrently.
type silence struct {
	endpoint string
	after    atomic.Int64 // the last result of judge

	mu     lock.Mutex[lock.Silence]
	first  firstBytes
	tries  tries
	told   time.Time // time of the last report; zero if there was none
	untold int       // retries since the last report
}

func newSilence(endpoint string) *silence {
	s := &silence{endpoint: endpoint, tries: tries{saved: firstTries * oneOf}}
	s.after.Store(int64(mostSilence))
	return s
}

// bound returns the maximum time without a received byte before a call is retried. 0 means no
// limit.
func (s *silence) bound() time.Duration { return time.Duration(s.after.Load()) }

// heard records the time from a request to the beginning of its answer.
func (s *silence) heard(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first.add(after)
	s.tries.answered()
	if is := int64(s.first.judge()); is != s.after.Load() {
		s.after.Store(is)
	}
}

// again uses one available retry. It returns false if there is none.
func (s *silence) again() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.tries.take() {
		return false
	}
	s.untold++
	return true
}

// news returns the number of retries since the last report. It returns 0 if it is too early for
// another report.
func (s *silence) news(now time.Time) (times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.untold > 0 && (s.told.IsZero() || now.Sub(s.told) >= tellAgain) {
		times, s.untold, s.told = s.untold, 0, now
	}
	return times
}

// tries counts the available retries. One answer earns 1/oneOf of a retry.
type tries struct{ saved int }

func (t *tries) answered() { t.saved = min(t.saved+1, mostTries*oneOf) }

func (t *tries) take() bool {
	if t.saved < oneOf {
		return false
	}
	t.saved -= oneOf
	return true
}

// firstBytes is a histogram of the time to the first byte of about the last thousand answers. It
// has four size classes per doubling, from 2^19 ns (half a millisecond) to 2^35 ns (half a minute).
// A result is at most a quarter too large.
type firstBytes struct {
	counts [4 * (longestFirst - shortestFirst)]uint16
	all    int
}

const (
	shortestFirst = 19
	longestFirst  = 35
	// rememberedFirst is the number of counted answers at which all counts are halved, so that
	// older answers have less weight.
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

// sizeOf returns the size class of a time. mostOf returns the largest time of a size class.
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

// within returns the time within which the given percentage of answers began.
func (f *firstBytes) within(percent int) time.Duration {
	rank := (f.all*percent + 99) / 100
	for i, n := range f.counts {
		if rank -= int(n); rank <= 0 {
			return mostOf(i)
		}
	}
	return 0
}

// judge returns the maximum time without a received byte. It returns 0 if most answers take longer
// than mostSilence, because then silence means nothing.
func (f *firstBytes) judge() time.Duration {
	switch {
	case f.all < enoughAnswers:
		return mostSilence
	case f.within(50) > mostSilence:
		return 0
	}
	return min(max(4*f.within(99), leastSilence), mostSilence)
}
