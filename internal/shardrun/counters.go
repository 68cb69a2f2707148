package shardrun

import "sync/atomic"

// Counters count what happens to the shards of a consumer. Each has the name of a field of
// weir.Counts, which says what it counts.
type Counters struct {
	Reads, RecordsRead, BytesRead, ReadsThrottled, ReadsFailed atomic.Uint64

	BatchesHandled, RecordsHandled, BytesHandled, HandlerFailures atomic.Uint64
	RecordsFiltered, RecordsNotJSON, RecordsSkipped               atomic.Uint64
	RecordsGivenUp, LettersFailed                                 atomic.Uint64

	Checkpoints, LeasesTaken, LeasesEnded, LeasesLost, Stalls, StoreFailures atomic.Uint64
}
