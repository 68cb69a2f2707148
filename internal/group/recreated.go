package group

import (
	"slices"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Renew returns actions for the leases of a deleted stream. Such a lease has a known Born value
// that is earlier than the listing's. A lease with an owner is revoked first. Once the lease is no
// longer valid for any session, it is deleted, or replaced if the new stream has a shard with the
// same name. The new lease has a later epoch. The old lease cannot be reused, because its position
// is meaningless and the parents and the range may differ. anew reports whether such leases exist.
func Renew(listing Listing, existing []lease.Lease, workers []lease.Worker, ripe map[lease.Key]uint64) (actions []lease.Action, anew bool) {
	var stale []lease.Lease
	for _, l := range existing {
		if listing.stale(l) {
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
			// This lease may still be valid for a session.
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

// stale reports whether a lease is of a deleted stream, and the listing is of a newer stream with
// the same name.
func (l Listing) stale(of lease.Lease) bool {
	return l.Born != 0 && of.Born != 0 && of.Born < l.Born
}

// outdated reports whether a listing is of a deleted stream. Another worker has then already listed
// the new stream of that name, and existing contains leases of the new stream, with a later Born
// value. The listing says nothing about these leases and their shards.
func outdated(listing Listing, existing []lease.Lease) bool {
	return listing.Born != 0 && slices.ContainsFunc(existing, func(l lease.Lease) bool { return l.Born > listing.Born })
}

// mostBirths limits the Birth actions of one call, so that urgent actions are not delayed.
const mostBirths = 200

// Births returns actions that set Born in leases that were created before the stream's creation
// time was known. Without Born, a later deletion of the stream would not be noticed in these
// leases. If such a lease already belongs to an earlier stream of that name, Kinesis rejects its
// position.
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

// rootless reports whether the listing contains a shard without parents that has no lease. In that
// case the leader that first saw the stream died before it had created all leases.
func rootless(stream string, listing Listing, leases []lease.Lease) bool {
	have := map[string]bool{}
	for _, l := range leases {
		if l.Stream == stream {
			have[l.Shard] = true
		}
	}
	return slices.ContainsFunc(listing.Shards, func(s shard.Shard) bool { return len(s.Parents) == 0 && !have[s.ID] })
}
