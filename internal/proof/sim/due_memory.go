package sim

import "time"

// How long shards may wait for memory in profiles with large records.

// othersKeep is until when the handlers of other shards may have kept all memory for large records:
// when two or more of them were last at work. One that keeps a page for long delays no other shard.
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
// handlers keep any: for 10 s before it gets in line, for two reads that are thrown away, and for
// each shard before it in line. Each read may need 5 s because of the service's limit, and a page
// is kept for 5 s at most before the next shard is served.
func (w *world) inLine(l *life) time.Duration {
	shards := 0
	for _, of := range w.books.last {
		if l != nil && of.Owner == l.session && !of.Finished() {
			shards++
		}
	}
	return time.Duration(1+max(shards, 1)) * 10 * time.Second
}
