//go:build !lockranks

package lock

import "sync"

// Checked reports whether the order is checked.
const Checked = false

// Mutex is a mutex of a rank.
type Mutex[R Rank] = sync.Mutex

// Free reports a violation if the goroutine holds a mutex of this package. Callers use it before a
// call that needs all mutexes free; the argument names that call.
func Free(what string) {}

// Violations returns the violations so far. After the first call, later ones are collected and no
// longer end the process. It returns nil if the order is not checked.
func Violations() []string { return nil }
