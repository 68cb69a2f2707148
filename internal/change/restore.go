package change

import (
	"fmt"

	"github.com/weir-go/weir/lease"
)

// Restore returns the steps that bring the leases of a dump into an application's store. It does
// not change leases that have the same position, no owner, no Deaths (unless they are finished),
// and an epoch that is not lower, so an interrupted restore can be repeated. If the store has any
// lease of the dump in another state, Restore returns an error unless replace is set. The error
// contains the number of such leases and the first one. Leases that are missing in the dump stay.
//
// Epochs keep increasing, because sinks compare epochs and may have seen those of the dump.
func Restore(leases []lease.Lease, v lease.View, replace bool) ([]Step, error) {
	have := make(map[lease.Key]*lease.Lease, len(v.Leases))
	for i := range v.Leases {
		have[v.Leases[i].Key] = &v.Leases[i]
	}
	var (
		steps   []Step
		taken   int
		example *lease.Lease
	)
	for _, l := range leases {
		step := Step{Key: l.Key, To: l.Position}
		there := have[l.Key]
		switch {
		case there == nil:
			step.Actions = []lease.Action{{Kind: lease.Create, Lease: l}}
		case there.Position == l.Position && there.Owner == "" && (there.Deaths == "" || there.Finished()) && there.Epoch >= l.Epoch:
			step.From, step.Why = there.Position, "it is there already"
		default:
			step.From = there.Position
			step.Actions = overwrite(there, l)
			if taken++; example == nil {
				example = there
			}
		}
		steps = append(steps, step)
	}
	if taken > 0 && !replace {
		return nil, fmt.Errorf("the store has %d of these leases already, %s at %s among them: give --replace to overwrite what is there, or import under another --app",
			taken, example.Key, example.Position)
	}
	return steps, nil
}

// overwrite moves the lease there to the position of l, which has the same key. A move increases
// the epoch by 1. If that is still less than the epoch of l, l then replaces the lease.
func overwrite(there *lease.Lease, l lease.Lease) []lease.Action {
	epoch := there.Epoch + 1
	actions := []lease.Action{{Kind: lease.Move, Key: l.Key, Epoch: there.Epoch, Position: l.Position, Born: l.Born}}
	if l.Epoch > epoch {
		actions = append(actions, lease.Action{Kind: lease.Replace, Key: l.Key, Epoch: epoch, Lease: l})
	}
	return actions
}
