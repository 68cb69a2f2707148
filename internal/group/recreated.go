package group

import (
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Renew returns the actions for leases of a deleted stream: their Born is known and differs from
// the listing's. They are revoked from their owners. Once no session can trust such a lease any
// more, it is removed. If the new stream has a shard of that name, a new lease at a later epoch
// replaces it: its parents and range may differ, and the old position is meaningless. anew reports
// whether there are leases of a deleted stream.
func Renew(listing Listing, existing []lease.Lease, workers []lease.Worker, ripe map[lease.Key]uint64) (actions []lease.Action, anew bool) {
	var stale []lease.Lease
	for _, l := range existing {
		if listing.Born != 0 && l.Born != 0 && l.Born != listing.Born {
			stale = append(stale, l)
		}
	}
	if len(stale) == 0 {
		return nil, false
	}
	live := map[string]bool{}
	for _, w := range workers {
		live[w.Session] = !w.Ended
	}
	here := make(map[string]shard.Shard, len(listing.Shards))
	for _, s := range listing.Shards {
		here[s.ID] = s
	}
	for _, l := range stale {
		at, isRipe := ripe[l.Key]
		switch {
		case l.Owner != "":
			actions = append(actions, lease.Action{Kind: lease.Revoke, Key: l.Key, Epoch: l.Epoch})
		case live[l.Revoked] && !(isRipe && at == l.Epoch):
			// It may still be trusted.
		default:
			s, ok := here[l.Shard]
			if !ok {
				actions = append(actions, lease.Action{Kind: lease.Delete, Key: l.Key, Epoch: l.Epoch})
				continue
			}
			actions = append(actions, lease.Action{Kind: lease.Replace, Key: l.Key, Epoch: l.Epoch, Lease: lease.Lease{
				Key: l.Key, Parents: s.Parents, Range: s.Range, Epoch: l.Epoch + 1, Position: shard.Oldest, Born: listing.Born,
			}})
		}
	}
	return actions, true
}

// mostBirths limits how many leases are filled in at a time, so that urgent actions are not
// delayed.
const mostBirths = 200

// Births returns actions that set the creation time of the stream in leases that were made before
// it was known. Without it these leases would not be recognized once the stream is deleted. If such
// a lease belongs to an earlier stream of that name, the service refuses its position.
func Births(listing Listing, existing []lease.Lease) (actions []lease.Action) {
	if listing.Born == 0 {
		return nil
	}
	for _, l := range existing {
		if l.Born == 0 && len(actions) < mostBirths {
			actions = append(actions, lease.Action{Kind: lease.Birth, Key: l.Key, Epoch: l.Epoch, Born: listing.Born})
		}
	}
	return actions
}
