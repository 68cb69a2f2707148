// Package history encodes the history of shards: a sample per minute for each shard. A chunk
// contains some minutes. The package is pure. A store keeps chunks without decoding them
// ([lease.Historian]). The dashboard decodes chunks, and treats them as untrusted input.
//
// A chunk consists of
//
//	version    a byte, 1
//	since      the minute of the first block, counted from 1970
//	worker     the length of the worker's name, and the name
//	blocks, each
//	  gap      minutes since the previous block; 0 for the first
//	  added    the number of shards that are new in the chunk's table, and then each of them:
//	    stream its index in the chunk's list of streams; the next free index adds a stream,
//	           whose name follows
//	    shard  twice its number plus one, for an ID like shardId-000000000007; for other IDs
//	           twice the length, and the ID
//	  samples  for each shard of the table, in order: a mask, or 0 if the shard was not held,
//	           and the bytes that the mask announces
//
// Numbers are varints. A sample omits bytes that equal those of the shard's previous sample (0 at
// the beginning). A shard without changes therefore needs one byte per minute. Marks are omitted if
// there are none.
package history
