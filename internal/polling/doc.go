// Package polling reads shards with GetRecords. A Poll reads one shard, page by page. A Feed reads
// a shard ahead of its handler, with memory from a budget. A Scheduler makes the reads of all feeds
// when they are due.
//
// Every call has a deadline and is made without the SDK's own retries, which would hide throttling
// for seconds. Pacing, backoff and the replacement of expired iterators happen here, where they can
// be observed.
package polling
