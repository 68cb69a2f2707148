//go:build lockranks

package lock

import (
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Checked reports whether the order is checked.
const Checked = true

// Mutex is a mutex with a rank.
type Mutex[R Rank] struct{ mu sync.Mutex }

// Lock checks the order and then locks m.
func (m *Mutex[R]) Lock() {
	var r R
	take(r)
	m.mu.Lock()
}

// TryLock tries to lock m. It does not wait, so any order is allowed. Mutexes that are taken after
// m are checked.
func (m *Mutex[R]) TryLock() bool {
	if !m.mu.TryLock() {
		return false
	}
	var r R
	note(r.Number())
	return true
}

// Unlock unlocks m.
func (m *Mutex[R]) Unlock() {
	var r R
	m.mu.Unlock()
	drop(r.Number())
}

// take notes that the goroutine is about to take a mutex.
func take(r Rank) {
	if held := note(r.Number()); held >= 0 {
		report(fmt.Sprintf("lock order: %s (%d) is taken by a goroutine that holds %s", Name(r), r.Number(), named(held)))
	}
}

// Free reports a violation if the goroutine holds a mutex of this package. Free is used before a
// call during which the goroutine must hold no mutex. what names that call.
func Free(what string) {
	if held := lowest(); held >= 0 {
		report(fmt.Sprintf("lock order: %s is called by a goroutine that holds %s", what, named(held)))
	}
}

func named(number int) string {
	for _, r := range Ranks {
		if r.Number() == number {
			return fmt.Sprintf("%s (%d)", Name(r), number)
		}
	}
	return fmt.Sprint(number)
}

var (
	collects   atomic.Bool // Violations was called
	mu         sync.Mutex  // guards violations
	violations []string
)

// Violations returns the violations since its last call. After its first call, violations are
// collected and no longer end the process.
func Violations() []string {
	if collects.CompareAndSwap(false, true) {
		return nil
	}
	mu.Lock()
	defer mu.Unlock()
	found := violations
	violations = nil
	return found
}

// report collects a violation, or prints it and ends the process. It does not panic, because the
// panic could be mistaken for one of user code.
func report(text string) {
	if !collects.Load() {
		fmt.Fprintf(os.Stderr, "fatal error: %s\n%s", text, debug.Stack())
		os.Exit(2)
	}
	mu.Lock()
	defer mu.Unlock()
	violations = append(violations, text)
}
