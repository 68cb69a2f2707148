package sim

import "time"

// This file contains limits for the wait for memory, in profiles with large records.

// othersKeep returns the time until which handlers of other shards may have held all the memory for
// large records. It is the last time at which at least two of these handlers were running. A single
// handler that holds an answer of GetRecords for long does not delay other shards.
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

// line is the queue of a worker's shards that wait for memory.
type line struct {
	since  int64 // when the wait began
	shards int   // largest number of shards since then
}

// inLine returns the maximum time that a shard waits for memory while fewer than two handlers hold
// memory. since is when the wait began. The shard waits 10 s before it joins the queue. This time
// includes two reads whose results are discarded. The shard then waits for each shard ahead of it
// in the queue. Each read may take 5 s because of the service's limit. Memory is held for at most 5
// s before the next shard is served. Shards that the worker has lost or finished since the wait
// began may also have been ahead in the queue.
func (n *line) inLine(since int64, shards int) time.Duration {
	if since != n.since {
		*n = line{since: since}
	}
	n.shards = max(n.shards, shards)
	return time.Duration(1+max(n.shards, 1)) * 10 * time.Second
}

// shardsOf returns the number of shards that a worker reads. It includes shards that were revoked,
// because the worker may not know about that yet.
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
