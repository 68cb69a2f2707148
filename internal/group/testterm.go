package group

import (
	"time"

	"github.com/weir-go/weir/lease"
)

// NewTestTerm returns a term that no worker has, for tests of other packages.
func NewTestTerm(l lease.Lease) *Term { return newTerm(l, newTrust(time.Hour), func() {}) }

// HoldTestTerm locks a term as a beat does, for tests of other packages, until release is called.
func HoldTestTerm(t *Term) (release func()) {
	t.mu.Lock()
	return t.mu.Unlock
}
