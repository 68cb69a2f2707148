//go:build lockranks

package lock

// This file records which mutexes each goroutine holds. The race detector must not see the mutexes
// of the buckets. These mutexes would order events that are unordered in the tested code, and hide
// the races of that code. The functions that access the table are therefore not instrumented. quiet
// hides the mutexes from the detector.

import "sync"

const (
	buckets = 1 << 10
	// mostHolders is the maximum number of goroutines in one bucket that hold mutexes at the same
	// time.
	mostHolders = 64
	// mostHeld is the maximum number of mutexes that a goroutine holds at the same time.
	mostHeld = 12
)

// holder is a goroutine that holds mutexes. It contains the ranks of the mutexes in the order in
// which the goroutine locked them.
type holder struct {
	g     uintptr // 0 for an unused entry
	n     int
	ranks [mostHeld]int
}

type bucket struct {
	mu  sync.Mutex
	all [mostHolders]holder
}

var table [buckets]bucket

// here locks and returns the bucket of this goroutine. g identifies the goroutine.
//
//go:norace
func here() (b *bucket, g uintptr) {
	g = goroutine()
	b = &table[(g>>6^g>>16)%buckets]
	quiet()
	b.mu.Lock()
	return b, g
}

//go:norace
func (b *bucket) leave() {
	b.mu.Unlock()
	loud()
}

// note adds a rank to the ranks that this goroutine holds. It returns a held rank that is not
// higher than number, or a negative number if all held ranks are higher.
//
//go:norace
func note(number int) (wrong int) {
	b, g := here()
	defer b.leave()
	var mine, free *holder
	for i := range b.all {
		switch h := &b.all[i]; h.g {
		case g:
			mine = h
		case 0:
			if free == nil {
				free = h
			}
		}
		if mine != nil {
			break
		}
	}
	if mine == nil {
		mine = free
		mine.g, mine.n = g, 0
	}
	wrong = -1
	for i := 0; i < mine.n; i++ {
		if mine.ranks[i] <= number {
			wrong = mine.ranks[i]
		}
	}
	mine.ranks[mine.n] = number
	mine.n++
	return wrong
}

// drop removes a rank from the ranks that this goroutine holds.
//
//go:norace
func drop(number int) {
	b, g := here()
	defer b.leave()
	for i := range b.all {
		h := &b.all[i]
		if h.g != g {
			continue
		}
		for j := h.n - 1; j >= 0; j-- {
			if h.ranks[j] != number {
				continue
			}
			for ; j < h.n-1; j++ {
				h.ranks[j] = h.ranks[j+1]
			}
			if h.n--; h.n == 0 {
				h.g = 0
			}
			return
		}
	}
}

// lowest returns the lowest rank that this goroutine holds. The result is negative if the goroutine
// holds no mutex.
//
//go:norace
func lowest() (low int) {
	b, g := here()
	defer b.leave()
	low = -1
	for i := range b.all {
		h := &b.all[i]
		if h.g != g {
			continue
		}
		for j := 0; j < h.n; j++ {
			if low < 0 || h.ranks[j] < low {
				low = h.ranks[j]
			}
		}
	}
	return low
}
