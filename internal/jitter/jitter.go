// Package jitter is where everything that weir leaves to chance comes from: how long to wait, and
// what a session is called. So a simulation can decide it.
package jitter

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	mrand "math/rand/v2"
	"sync/atomic"
	"time"
)

// Source returns a number that of and n, and whatever else the source knows, decide. n is the bound
// of a duration in nanoseconds, 0 where there is none.
type Source func(of string, n uint64) uint64

var source atomic.Pointer[Source]

// Replace has everything come from s instead of chance until restore is called. It is for
// simulations: it concerns the whole process. s is called concurrently.
func Replace(s Source) (restore func()) {
	before := source.Swap(&s)
	return func() { source.Store(before) }
}

// N returns a duration of at least 0 and less than d, which must be positive.
func N(d time.Duration) time.Duration { return Of("", d) }

// Of is N for what many do at one instant, under a name each: a simulation gives each another
// duration, too. Otherwise their timers would end at one instant as well, and the order of those is
// random.
func Of(name string, d time.Duration) time.Duration {
	if s := source.Load(); s != nil {
		return time.Duration((*s)(name, uint64(d)) % uint64(d))
	}
	return mrand.N(d)
}

// Name returns 20 hexadecimal digits that nobody else gets, for a worker that is called of.
func Name(of string) string {
	var b [10]byte
	if s := source.Load(); s != nil {
		binary.BigEndian.PutUint64(b[:], (*s)(of, 0))
	} else {
		_, _ = rand.Read(b[:]) // never fails
	}
	return hex.EncodeToString(b[:])
}
