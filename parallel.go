package weir

import "time"

// Parallel sets how many partition keys of a shard are handled at once. With the zero Parallel, one
// batch of a shard is handled after the other.
//
// With Keys set, each batch has records of one partition key, and while it is handled no other
// batch with that key is. So the order within each key is kept, even across splits and merges, and
// the order between keys is not. Several goroutines call the handler for one shard. For a record of
// an aggregate, its own key counts, not the key of the aggregate.
//
// The checkpoint is the position before which everything is done. When the shard is handed off in
// order, the records that are done after the checkpoint are saved with it, as far as they fit.
// Otherwise, and when the worker dies, the next owner handles them again: at most Span records. A
// key whose handler fails holds up only itself, and its backoff is reported as for a batch. Other
// keys continue until Span, SpanBytes or SpanAge is reached; then the shard waits for the key.
// [GiveUp] ends the wait. [Batch].Checkpoint waits for the earlier records of the shard, too. The
// last batch of a shard has no records and arrives when all its keys are done.
//
// Streams that distribute records by themselves have records without a key, which are handled in no
// order. On such a stream the records of a key are in different shards, so they have no order
// either.
//
// Parallel works with [Consumer.Run], not with RunShards, and not with ReuseBuffers.
type Parallel struct {
	// Keys is how many keys of a shard are handled at a time, 2 to 10,000. 0, the default, and 1
	// are one batch after the other, of all keys.
	Keys int
	// Calls is the limit of concurrent handler calls in this worker, 1 to 100,000. The call with
	// the oldest record of a shard does not count, so each shard has one more. Defaults to 4 times
	// Keys.
	Calls int
	// Span is how many records of a shard there are from the oldest that is not done to the newest
	// that was begun, 100 to 1,000,000. Defaults to 10,000.
	Span int
	// SpanBytes is the same limit in bytes that were read, 1 MiB to 1 GiB. A single read may exceed
	// it. MaxMemory limits it as well, as for all records that were read and are not yet handled.
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
			bad("Options.Parallel.Keys is %d although other fields of Parallel are set: set the number of keys of a shard that are handled at once", p.Keys)
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
		bad("Options.ReuseBuffers cannot be combined with Parallel: a record may wait for its key after its buffer is reused")
	}
}
