//go:build !lockranks

package lock

import "sync"

// Checked reports whether the order is checked.
const Checked = false

// Mutex is a mutex with a rank.
type Mutex[R Rank] = sync.Mutex

// Free reports a violation if the goroutine holds a mutex of this package. Free is used before a
// call during which the goroutine must hold no mutex. what names that call.
func Free(what string) {}

// Violations returns the violations since its last call. After its first call, violations are
// collected and no longer end the process. It returns nil if the order is not checked.
func Violations() []string { return nil }
