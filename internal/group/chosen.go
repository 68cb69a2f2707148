package group

import (
	"slices"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// chosen returns the listing without the shards that the application does not read. It reads the
// chosen shards, shards that it has begun, and the descendants of both. Without chosen shards it
// reads all of them.
//
// If the stream was deleted and created again, existing may contain leases of the deleted stream.
// These say nothing about shards of the new stream that have the same names.
func (cfg Config) chosen(listing Listing, existing []lease.Lease) Listing {
	if cfg.Shards == nil {
		return listing
	}
	read, known, begun := map[string]bool{}, map[string]bool{}, []lease.Lease{}
	for _, id := range cfg.Shards {
		read[id] = true
	}
	existing = slices.DeleteFunc(slices.Clone(existing), listing.stale)
	for _, l := range existing {
		known[l.Shard] = true
		if read[l.Shard] = read[l.Shard] || !tombstone(l); read[l.Shard] {
			begun = append(begun, l)
		}
	}
	// Chosen shards and some of their descendants may have ended before the application's start.
	for changed := true; changed; {
		changed = false
		for _, l := range existing {
			if !read[l.Shard] && slices.ContainsFunc(l.Parents, func(p string) bool { return read[p] }) {
				read[l.Shard], changed = true, true
			}
		}
	}
	graph := shard.NewGraph(listing.Shards)
	listing.Shards = nil
	for _, id := range graph.Ordered() { // ancestors first
		sh, _ := graph.Shard(id)
		read[id] = read[id] || !known[id] && descends(sh, read, known, begun)
		known[id] = true
		if read[id] {
			listing.Shards = append(listing.Shards, sh)
		}
	}
	return listing
}

// descends reports whether a shard descends from a shard that the application reads. If no worker
// ran for so long that a parent came and left the stream without a lease, the key ranges decide: a
// shard that is newer than a shard with a lease, and has keys of it, descends from it. Kinesis
// numbers shards in the order of their creation.
func descends(sh shard.Shard, read, known map[string]bool, begun []lease.Lease) bool {
	if slices.ContainsFunc(sh.Parents, func(p string) bool { return read[p] }) {
		return true
	}
	if !slices.ContainsFunc(sh.Parents, func(p string) bool { return !known[p] }) {
		return false
	}
	return slices.ContainsFunc(begun, func(of lease.Lease) bool { return of.Shard < sh.ID && overlap(of.Range, sh.Range) })
}

// divide divides new leases into those of the shards in read, and those of other shards. The latter
// are finished: no worker reads these shards, and their children do not wait for them.
func divide(missing []lease.Lease, read Listing) (wanted, unwanted []lease.Lease) {
	ids := make(map[string]bool, len(read.Shards))
	for _, sh := range read.Shards {
		ids[sh.ID] = true
	}
	for _, l := range missing {
		if ids[l.Shard] {
			wanted = append(wanted, l)
			continue
		}
		l.Position = shard.End
		unwanted = append(unwanted, l)
	}
	return wanted, unwanted
}

// overlap reports whether two key ranges have a key in common. The zero range, which leases that
// were moved from other clients can have, has no keys.
func overlap(a, b shard.HashRange) bool {
	none := shard.HashRange{}
	return a != none && b != none && a.Start.Compare(b.End) <= 0 && b.Start.Compare(a.End) <= 0
}

// checkChosen logs the chosen shards that neither the stream nor the application has.
func (cfg Config) checkChosen(stream string, listing Listing, existing []lease.Lease) {
	var unknown []string
	for _, id := range cfg.Shards {
		if !slices.ContainsFunc(listing.Shards, func(s shard.Shard) bool { return s.ID == id }) &&
			!slices.ContainsFunc(existing, func(l lease.Lease) bool { return l.Shard == id }) {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) > 0 {
		cfg.Log.Error("the stream does not have shards that Options.Shards names, so these are not read",
			"stream", stream, "shards", unknown)
	}
}
