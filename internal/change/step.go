// Package change decides how a reset or an import of checkpoints changes a store. It determines
// which leases change, in which order, and under which conditions. It is pure.
package change

import (
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Step is the change of one lease.
type Step struct {
	lease.Key
	From shard.Position // zero if there is no lease yet
	To   shard.Position
	Why  string // the rule that applied, for people; "" if the step is exactly as requested
	// Actions are executed in order. The slice is empty if there is nothing to do.
	Actions []lease.Action
}

// Happened reports whether a view shows that the step is done. It is only for a store that did not
// answer. A store that answered returns the result itself, and a lease that was assigned since then
// may have moved on.
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
