package sim

import "time"

// Limits for waiting for memory, in profiles with large records.

// othersKeep returns until when the handlers of other shards may have held all memory for large
// records: when two or more of them were last running. A single one that holds a page for long
// delays no other shard.
func (h *hindered) othersKeep(shard string) int64 {
	last, before := int64(0), int64(0)
	for of, at := range h.handles {
		switch {
		case of == shard || of == "hook":
		case at > last:
			last, before = at, last
		default:
			before = max(before, at)
		}
	}
	return before
}

// line is the line of a worker's shards that wait for memory.
type line struct {
	since  int64 // when the wait began
	shards int   // the largest number since then
}

// inLine returns how long a shard of a worker waits for memory at most, while fewer than two
// handlers hold any. The shard has waited since then. It waits 10 s before it joins the queue, for
// two discarded reads, and for each shard before it in the queue. Each read may need 5 s because of
// the service's limit, and a page is held for at most 5 s before the next shard is served. Shards
// that the worker has lost or finished since the wait began also were before it in the queue.
func (n *line) inLine(since int64, shards int) time.Duration {
	if since != n.since {
		*n = line{since: since}
	}
	n.shards = max(n.shards, shards)
	return time.Duration(1+max(n.shards, 1)) * 10 * time.Second
}

// shardsOf returns how many shards a worker reads, including those that were revoked from it and
// that it may not know of.
func (w *world) shardsOf(l *life) (shards int) {
	if l == nil || l.session == "" {
		return 0
	}
	for _, of := range w.books.last {
		if (of.Owner == l.session || of.Revoked == l.session) && !of.Finished() {
			shards++
		}
	}
	return shards
}
