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

// inLine returns how long a shard of a worker waits for memory at most, while fewer than two
// handlers hold any. It waits 10 s before it joins the queue, for two discarded reads, and for each
// shard before it in the queue. Each read may need 5 s because of the service's limit, and a page
// is held for at most 5 s before the next shard is served.
func (w *world) inLine(l *life) time.Duration {
	shards := 0
	for _, of := range w.books.last {
		if l != nil && of.Owner == l.session && !of.Finished() {
			shards++
		}
	}
	return time.Duration(1+max(shards, 1)) * 10 * time.Second
}
