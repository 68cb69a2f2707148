// Package jitter provides random wait times, and random names for the sessions of workers. A
// simulation can replace the source of these numbers.
package jitter

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	mrand "math/rand/v2"
	"sync/atomic"
	"time"
)

// Source returns a number. Its arguments and its state determine that number. of is a name. n is
// the limit of a duration in nanoseconds, which the duration never reaches, or 0 for no limit.
// Callers reduce a larger number modulo n.
type Source func(of string, n uint64) uint64

var source atomic.Pointer[Source]

// Replace makes all numbers come from s until restore is called. It is for simulations and affects
// the whole process. s may be called concurrently.
func Replace(s Source) (restore func()) {
	before := source.Swap(&s)
	return func() { source.Store(before) }
}

// N returns a duration that is at least 0 and less than d. d must be positive.
func N(d time.Duration) time.Duration { return Of("", d) }

// Of is like N. Many callers may call it at the same instant with different names. A simulation can
// then give them different durations. With equal durations, their timers would also fire at the
// same instant, in random order.
func Of(name string, d time.Duration) time.Duration {
	if s := source.Load(); s != nil {
		return time.Duration((*s)(name, uint64(d)) % uint64(d))
	}
	return mrand.N(d)
}

// Name returns 20 unique hexadecimal digits for a worker. The argument is the worker's name.
func Name(of string) string {
	var b [10]byte
	if s := source.Load(); s != nil {
		binary.BigEndian.PutUint64(b[:], (*s)(of, 0))
	} else {
		_, _ = rand.Read(b[:]) // never fails
	}
	return hex.EncodeToString(b[:])
}
