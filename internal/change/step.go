// Package change decides how a reset or an import of checkpoints changes a store. It determines
// which leases change, in which order, and under which conditions. Its functions are pure.
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

// Happened reports whether a view shows that the step is done. Use it only if the store did not
// answer the call that carries out the step. If the store answered, use the answer, because a view
// may show a later state: a worker may have moved the checkpoint since.
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
			return last.Kind != lease.Delete && l.Epoch >= epoch && l.Position.Compare(s.To) >= 0
		}
	}
	return last.Kind == lease.Delete
}
