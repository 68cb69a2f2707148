//go:build !lockranks

package lock

import "sync"

// Checked reports whether the order is checked.
const Checked = false

// Mutex is a mutex with a rank.
type Mutex[R Rank] = sync.Mutex

// Free does nothing. With the tag lockranks, it reports a violation if the goroutine holds a mutex
// of this package. Free is used before a call during which the goroutine must hold no mutex. what
// names that call.
func Free(what string) {}

// Violations returns nil, because the order is not checked. With the tag lockranks, it returns the
// violations since its last call.
func Violations() []string { return nil }
