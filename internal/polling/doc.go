// Package polling reads shards with GetRecords. A Poll reads one shard, page by page. A Feed reads
// a shard ahead of its handler, with memory from a budget. A Scheduler starts the reads of all
// feeds when they are due.
//
// Every call has a deadline. The SDK's own retries are disabled, because they would hide throttling
// for seconds. This package limits the read rate, backs off and replaces expired iterators, and
// reports each of these.
package polling
