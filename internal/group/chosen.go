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
	read := map[string]bool{}
	for _, id := range cfg.Shards {
		read[id] = true
	}
	for _, l := range existing {
		read[l.Shard] = read[l.Shard] || !tombstone(l)
	}
	for _, l := range missing {
		if read[l.Shard] || slices.ContainsFunc(l.Parents, func(p string) bool { return read[p] }) {
			read[l.Shard] = true
			wanted = append(wanted, l)
			continue
		}
		l.Position = shard.End
		unwanted = append(unwanted, l)
	}
	return wanted, unwanted
}

// dropUnwanted changes the actions that replace leases of a recreated stream. If a lease was
// created as finished because its shard is not chosen, it is deleted instead. A later listing then
// creates it as finished again.
func (cfg Config) dropUnwanted(actions []lease.Action) []lease.Action {
	if cfg.Shards == nil {
		return actions
	}
	for i, a := range actions {
		if a.Kind == lease.Replace && a.Epoch == 1 && !slices.Contains(cfg.Shards, a.Key.Shard) {
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
