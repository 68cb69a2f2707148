package judge

import "slices"

// This file contains the rules for shards whose keys are handled in parallel, with [Judge.Span].

// beside reports whether two batches may be handled at the same time. They must have different
// keys or partitions, the same worker and the same epoch, and must not contain the end of the
// shard.
func (j *Judge) beside(a, b *Batch) bool {
	if j.Span == 0 || a.Worker != b.Worker || a.Epoch != b.Epoch || a.End || b.End {
		return false
	}
	if a.Partitions > 0 {
		return a.Partitions > 1 && a.Partition != b.Partition
	}
	return !slices.ContainsFunc(a.IDs, func(id ID) bool {
		return slices.ContainsFunc(b.IDs, func(other ID) bool { return id.Key == other.Key })
	})
}

// ofOneKey checks that all records of a batch have the same key, unless they are of a partition.
func (j *Judge) ofOneKey(b *Batch) {
	for _, id := range b.IDs {
		if j.Span > 0 && b.Partitions == 0 && id.Key != b.IDs[0].Key {
			j.breaks("%s is handed %s and %s in one batch of %s, which are of two keys", b.Worker, b.IDs[0], id, b.Shard)
			return
		}
	}
}
