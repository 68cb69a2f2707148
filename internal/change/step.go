// Package change decides what a reset of checkpoints and an import of them change in a store: which
// leases, in which order, and under which conditions. It is pure.
package change

import (
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Step is what happens to one lease.
type Step struct {
	lease.Key
	From shard.Position // zero when there is no lease yet
	To   shard.Position
	Why  string // for people: what the rule was, "" when it is what was asked for
	// Actions are carried out in their order; none when there is nothing to do.
	Actions []lease.Action
}

// Happened reports whether a view shows the step as done. It is for the case that a store did not
// answer: one that did says so itself, and a lease that was given out since then may be further
// already.
func (s Step) Happened(v lease.View) bool {
	if len(s.Actions) == 0 {
		return true
	}
	last := s.Actions[len(s.Actions)-1]
	for _, l := range v.Leases {
		if l.Key == s.Key {
			epoch := last.Epoch + 1
			if last.Kind == lease.Create || last.Kind == lease.Replace {
				epoch = last.Lease.Epoch
			}
			return l.Epoch >= epoch && l.Position.Compare(s.To) >= 0
		}
	}
	return false
}
