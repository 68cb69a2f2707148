package weir

import "time"

// Parallel says how many partition keys of a shard are handled at once. The zero Parallel is one
// batch of a shard after the other.
//
// With Keys set, each batch has records of one partition key, and while it is handled no other
// batch of that key is. So the order of each key is kept, across splits and merges, too, and the
// order between keys is not. A handler is called by many goroutines for one shard. The key of a
// record that was packed into another counts, not that of the record around it.
//
// The checkpoint is the place before which everything is done. What was done beyond it goes along
// when the shard is handed on in order, as far as it fits beside the checkpoint; else, and when the
// worker dies, the next owner handles it again: Span records at most. A key that fails holds up
// itself, and what it has to wait for is told as for a batch; other keys go on until Span,
// SpanBytes or SpanAge is reached, and then the shard waits for it. [GiveUp] ends that.
// [Batch].Checkpoint waits for what lies before the record in the shard, too. The last batch of a
// shard has no records and comes when all its keys are done.
//
// Records without a key, which streams have that distribute records by themselves, are handled in
// no order. On such a stream a key that is there keeps no order either: its records are in
// different shards.
//
// It goes with [Consumer.Run], not with RunShards, and not with ReuseBuffers.
type Parallel struct {
	// Keys is how many keys of a shard are handled at a time, 2 to 10,000. 0, the default, and 1
	// are one batch after the other, of all keys.
	Keys int
	// Calls is how many calls of the handler there are at a time in this worker beside one for each
	// shard, which needs no leave: the one with the shard's oldest record. 1 to 100,000. Defaults
	// to 4 times Keys.
	Calls int
	// Span is how many records of a shard there are from the oldest that is not done to the newest
	// that was begun, 100 to 1,000,000. Defaults to 10,000.
	Span int
	// SpanBytes is the same in bytes of what was read, 1 MiB to 1 GiB; what a single read brings
	// may exceed it. It is also bounded by MaxMemory, as what was read and not yet handled is.
	// Defaults to 16 MiB.
	SpanBytes int
	// SpanAge is for how long the oldest record that is not done may hold the checkpoint until
	// nothing more is added to the span, 1 s to 24 h. 0, the default, is no bound.
	SpanAge time.Duration
}

// on reports whether keys are handled side by side.
func (p *Parallel) on() bool { return p.Keys > 1 }

// check fills defaults in and returns what is wrong.
func (p *Parallel) check(reuse bool, bad func(format string, args ...any)) {
	if p.Keys == 0 || p.Keys == 1 {
		if *p != (Parallel{Keys: p.Keys}) {
			bad("Options.Parallel.Keys is %d although other fields of Parallel are set: say how many keys of a shard are handled at once", p.Keys)
		}
		return
	}
	within := func(name string, n *int, fallback, low, high int) {
		if *n == 0 {
			*n = fallback
		}
		if *n < low || *n > high {
			bad("Options.Parallel.%s %d must be between %d and %d", name, *n, low, high)
		}
	}
	within("Keys", &p.Keys, 0, 2, 10_000)
	within("Calls", &p.Calls, 4*min(max(p.Keys, 1), 10_000), 1, 100_000)
	within("Span", &p.Span, 10_000, 100, 1_000_000)
	within("SpanBytes", &p.SpanBytes, 16<<20, 1<<20, 1<<30)
	if p.SpanAge != 0 && (p.SpanAge < time.Second || p.SpanAge > 24*time.Hour) {
		bad("Options.Parallel.SpanAge %v must be between 1s and 24h, or 0 for no bound", p.SpanAge)
	}
	if reuse {
		bad("Options.ReuseBuffers does not go with Parallel: a record waits for its key longer than its buffer lasts")
	}
}
