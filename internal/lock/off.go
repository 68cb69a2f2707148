//go:build !lockranks

package lock

import "sync"

// Checked reports whether the order is checked.
const Checked = false

// Mutex is a mutex of a rank.
type Mutex[R Rank] = sync.Mutex

// Free reports a goroutine that holds a mutex of this package where it must hold none, because it
// is about to make the call that what names.
func Free(what string) {}

// Violations returns what was found so far, and has later violations collected instead of ending
// the process. It returns nil if the order is not checked.
func Violations() []string { return nil }
