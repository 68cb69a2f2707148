package group

import (
	"slices"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// unwanted divides new leases into those of shards that the application reads, and those of other
// shards. The latter are finished: no worker reads these shards, and their children do not wait for
// them. Without chosen shards, all leases are wanted.
//
// An application reads the chosen shards, shards that it has begun, and the descendants of both.
// missing is sorted by lineage, ancestors first.
func (cfg Config) unwanted(missing, existing []lease.Lease) (wanted, unwanted []lease.Lease) {
	if cfg.Shards == nil {
		return missing, nil
	}
	read, begun := map[string]bool{}, []lease.Lease{}
	known := map[string]bool{}
	for _, id := range cfg.Shards {
		read[id] = true
	}
	existing = slices.DeleteFunc(slices.Clone(existing), func(l lease.Lease) bool {
		return l.Born != 0 && len(missing) > 0 && l.Born < missing[0].Born // of a deleted stream
	})
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
	for _, l := range missing {
		known[l.Shard] = true
		if read[l.Shard] || descends(l, read, known, begun) {
			read[l.Shard] = true
			wanted = append(wanted, l)
			continue
		}
		l.Position = shard.End
		unwanted = append(unwanted, l)
	}
	return wanted, unwanted
}

// descends reports whether a shard descends from a shard that the application reads. If no worker
// ran for so long that a parent came and left the stream without a lease, the key ranges decide: a
// shard that is newer than a shard with a lease, and has keys of it, descends from it. Kinesis
// numbers shards in the order of their creation.
func descends(l lease.Lease, read, known map[string]bool, begun []lease.Lease) bool {
	if slices.ContainsFunc(l.Parents, func(p string) bool { return read[p] }) {
		return true
	}
	if !slices.ContainsFunc(l.Parents, func(p string) bool { return !known[p] }) {
		return false
	}
	return slices.ContainsFunc(begun, func(of lease.Lease) bool { return of.Shard < l.Shard && overlap(of.Range, l.Range) })
}

// overlap reports whether two key ranges have a key in common. The zero range, which leases that
// were moved from other clients can have, has no keys.
func overlap(a, b shard.HashRange) bool {
	none := shard.HashRange{}
	return a != none && b != none && a.Start.Compare(b.End) <= 0 && b.Start.Compare(a.End) <= 0
}

// dropUnwanted changes the actions that replace leases of a recreated stream. The lease of a shard
// that the application does not read in the new stream is deleted instead. A later listing then
// creates it as finished.
func (cfg Config) dropUnwanted(actions []lease.Action, listing Listing) []lease.Action {
	if cfg.Shards == nil || len(actions) == 0 {
		return actions
	}
	read := map[string]bool{}
	for _, id := range cfg.Shards {
		read[id] = true
	}
	graph := shard.NewGraph(listing.Shards)
	for _, id := range graph.Ordered() {
		sh, _ := graph.Shard(id)
		read[id] = read[id] || slices.ContainsFunc(sh.Parents, func(p string) bool { return read[p] })
	}
	for i, a := range actions {
		if a.Kind == lease.Replace && !read[a.Key.Shard] {
			actions[i] = lease.Action{Kind: lease.Delete, Key: a.Key, Epoch: a.Epoch}
		}
	}
	return actions
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
