package weir

import "time"

// Concurrency sets how many partition keys of a shard weir handles at the same time. With the zero
// Concurrency, weir handles the batches of a shard one after the other.
//
// With Keys set, each batch has records of one partition key, and weir handles at most one batch of
// a key at a time. So weir keeps the order within each key, even across splits and merges, but not
// the order between keys. Several goroutines call the handler for one shard. In an aggregate, the
// key of each packed record counts, not the key of the aggregate.
//
// The checkpoint is the position before which all records are done. In an orderly handoff, weir
// also saves which records after the checkpoint are done, as far as they fit into the lease. If
// they do not fit, or if the worker dies, the next owner handles these records again: at most
// MaxRecords.
//
// A key whose handler fails delays only itself at first. Other keys continue until MaxRecords,
// MaxBytes or MaxAge is reached, and then the shard waits for the failing key. [FailurePolicy] ends
// the wait. [Batch].Checkpoint also waits for earlier records of the shard. The last batch of a
// shard has no records, and comes when all keys are done.
//
// A stream that distributes records by itself may have records without a key. weir handles them in
// any order. In such a stream, records with the same key are in different shards, so weir keeps no
// order between them either.
//
// Keys works with [Consumer.Run], and with RunShards if [ShardHandlers].Partitions is set. It does
// not work with RunPull, Records and ReuseBuffers.
type Concurrency struct {
	// Keys is the number of keys of a shard that are handled at the same time, 2 to 10,000. With 0,
	// the default, and with 1, weir handles one batch after the other, with records of all keys.
	// Lambda calls it ParallelizationFactor.
	Keys int
	// MaxCalls limits the concurrent handler calls of this worker, 1 to 100,000. In each shard, the
	// call with the oldest record does not count. Defaults to 4 times Keys.
	MaxCalls int
	// MaxRecords limits the number of records of a shard from the oldest one that is not done to
	// the newest one that was begun, 100 to 1,000,000. Defaults to 10,000.
	MaxRecords int
	// MaxBytes limits the size of the records that MaxRecords counts, in bytes, 1 MiB to 1 GiB. A
	// single read may exceed the limit. These bytes also count for Options.MaxMemory. Defaults to
	// 16 MiB.
	MaxBytes int
	// MaxAge limits the time for which the oldest record that is not done has waited. While it has
	// waited longer, weir begins no new records of the shard. 1 s to 24 h; 0, the default, is no
	// limit.
	MaxAge time.Duration
}

// on reports whether keys are handled in parallel.
func (p *Concurrency) on() bool { return p.Keys > 1 }

// of returns the limits for a number of partitions of a shard. Without Keys, all partitions are
// handled at the same time.
func (p Concurrency) of(partitions int) Concurrency {
	if !p.on() {
		p.Keys = partitions
		p.check(false, func(string, string, ...any) {})
	}
	p.Keys = min(p.Keys, partitions)
	return p
}

// check fills in the defaults and reports invalid values.
func (p *Concurrency) check(reuse bool, bad badFunc) {
	if p.Keys == 0 || p.Keys == 1 {
		if *p != (Concurrency{Keys: p.Keys}) {
			bad("Options.Concurrency.Keys", "is %d although other fields of Concurrency are set: set the number of keys of a shard that are handled at once", p.Keys)
		}
		return
	}
	within := func(name string, n *int, fallback, low, high int) {
		if *n == 0 {
			*n = fallback
		}
		if *n < low || *n > high {
			bad("Options.Concurrency."+name, "%d must be between %d and %d", *n, low, high)
		}
	}
	within("Keys", &p.Keys, 0, 2, 10_000)
	within("MaxCalls", &p.MaxCalls, 4*min(max(p.Keys, 1), 10_000), 1, 100_000)
	within("MaxRecords", &p.MaxRecords, 10_000, 100, 1_000_000)
	within("MaxBytes", &p.MaxBytes, 16<<20, 1<<20, 1<<30)
	if p.MaxAge != 0 && (p.MaxAge < time.Second || p.MaxAge > 24*time.Hour) {
		bad("Options.Concurrency.MaxAge", "%v must be between 1s and 24h, or 0 for no limit", p.MaxAge)
	}
	if reuse {
		bad("Options.ReuseBuffers", "cannot be combined with Options.Concurrency: a record may wait for its key after its buffer is reused")
	}
}
