// Package polling reads shards with GetRecords. A Poll reads one shard, page by page. A Feed reads
// one ahead of its handler, with memory from a budget; a Scheduler makes the reads of all feeds
// when they are due.
//
// Every call has a deadline and is made without the SDK's own retries, which would hide throttling
// for seconds: pacing, back-off and the mending of expired iterators happen here, where they can be
// seen.
package polling
