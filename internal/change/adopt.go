package change

import (
	"fmt"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Wanted is a lease that an application needs to continue from another client's progress.
type Wanted struct {
	Lease lease.Lease
	Why   string // for people, "" if the position is simply the other client's
}

// Adopt returns the steps that bring another client's progress into an application's store. Adopt
// can be repeated. A lease that exists already is treated as follows:
//
//   - A lease without an owner at the wanted position stays. If the wanted position is a time, such
//     a lease at an earlier time also stays, because an earlier run of the same plan made it.
//   - A lease that never had an owner has no progress, and moves to the wanted position.
//   - A lease whose position is not newer moves: the other client has read on meanwhile, or a
//     worker owns the lease.
//   - A lease with newer progress moves back only if replace is set. Otherwise Adopt returns an
//     error with the number of such leases and the first one.
func Adopt(wanted []Wanted, v lease.View, replace bool) ([]Step, error) {
	have := make(map[lease.Key]*lease.Lease, len(v.Leases))
	for i := range v.Leases {
		have[v.Leases[i].Key] = &v.Leases[i]
	}
	var (
		steps   []Step
		newer   int
		example Step
	)
	for _, w := range wanted {
		l := w.Lease
		step := Step{Key: l.Key, To: l.Position, Why: w.Why}
		there := have[l.Key]
		if there == nil {
			step.Actions = []lease.Action{{Kind: lease.Create, Lease: l}}
			steps = append(steps, step)
			continue
		}
		step.From = there.Position
		switch {
		case there.Owner == "" && isThere(there.Position, l.Position):
			step.Why = "it is there already"
		case there.Owner == "" && there.Last == "" && there.Epoch <= 1:
			step.Why = "no worker ever had it"
			step.Actions = overwrite(there, l)
		default:
			if isNewer(there.Position, l.Position) {
				if newer++; newer == 1 {
					example = step
				}
			}
			step.Actions = overwrite(there, l)
		}
		steps = append(steps, step)
	}
	if newer > 0 && !replace {
		return nil, fmt.Errorf(
			"the application is ahead in %d of these shards already, at %s of %s instead of %s: "+
				"give --replace to move it back, which repeats records, or use another --app",
			newer,
			example.From,
			example.Key,
			example.To,
		)
	}
	return steps, nil
}

// isThere reports whether a lease at position p need not move to position to.
func isThere(p, to shard.Position) bool {
	return p == to || p.Kind() == shard.Time && to.Kind() == shard.Time && p.Compare(to) < 0
}

// isNewer reports whether position p is after position to. If to is the oldest record, every time
// counts as after it.
func isNewer(p, to shard.Position) bool {
	return p.Compare(to) > 0 || p.Kind() == shard.Time && to.Kind() == shard.First
}
