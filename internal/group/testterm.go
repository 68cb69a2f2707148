package group

import (
	"time"

	"github.com/weir-go/weir/lease"
)

// NewTestTerm returns a term without a worker, for tests of other packages.
func NewTestTerm(l lease.Lease) *Term { return newTerm(l, newValidity(time.Hour), func() {}) }

// HoldTestTerm locks a term as a heartbeat does, until release is called. It is for tests of other
// packages.
func HoldTestTerm(t *Term) (release func()) {
	t.mu.Lock()
	return t.mu.Unlock
}
