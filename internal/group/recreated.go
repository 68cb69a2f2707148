package group

import (
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Renew returns what is to be done about leases of a stream that was deleted: those whose birth is
// known and is not the listing's. They are taken from their owners, and when nobody can trust one
// any more it makes way for a new one of the same name, if there is such a shard, at a later epoch:
// its parents and its range can be others, and no position of before means anything. anew says that
// there are such leases.
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

// mostBirths bounds how many leases are filled in at a time, beside what is more urgent.
const mostBirths = 200

// Births returns what fills in since when there has been the stream of leases that were made before
// that was known: without it they would not be recognized as those of a deleted one. Such a lease
// could be of an earlier stream of the name; then its position is refused, as ever.
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
