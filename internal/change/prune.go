package change

import (
	"slices"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Prune returns the steps that delete the leases of shards that have left a stream. A lease with an
// owner stays. If the stream is gone, s has no shards, and all of its leases are deleted.
//
// Weir deletes finished leases itself. Prune also deletes leases that were not finished when their
// shards left. The records that such a lease was waiting for are lost already.
func Prune(s Stream, leases []lease.Lease) (steps []Step) {
	here := map[string]bool{}
	for _, sh := range s.Shards {
		here[sh.ID] = true
	}
	for _, l := range leases {
		if l.Stream != s.Name || here[l.Shard] {
			continue
		}
		step := Step{Key: l.Key, From: l.Position, To: shard.End}
		switch {
		case l.Owner != "":
			step.To, step.Why = l.Position, "it has an owner: stop its worker first"
		case l.Finished():
			step.Why = "its shard has left the stream"
		default:
			step.Why = "its shard has left the stream before it was read to its end"
		}
		if l.Owner == "" {
			step.Actions = []lease.Action{{Kind: lease.Delete, Key: l.Key, Epoch: l.Epoch}}
		}
		steps = append(steps, step)
	}
	slices.SortFunc(steps, func(a, b Step) int { return a.Key.Compare(b.Key) })
	return steps
}
