// Package history encodes the reports of workers on how their shards stood over time: a sample per
// minute for each shard, and some minutes per chunk. It is pure. A store keeps chunks without
// decoding them ([lease.Historian]); the page decodes them, and trusts no chunk.
//
// A chunk is
//
//	version    a byte, 1
//	since      the minute of the first block, since the beginning of 1970
//	worker     the length of the worker's name, and the name
//	blocks, each
//	  gap      minutes since the block before; 0 also for the first
//	  added    how many shards are new to the chunk's table, and then each of them:
//	    stream its place in the chunk's list of streams; the next place is a new one, whose name
//	           follows
//	    shard  twice its number and one more, for an ID like shardId-000000000007; for any other
//	           twice its length, and the ID
//	  samples  for each shard of the table, in its order: a mask, 0 for one that was not held,
//	           and the bytes that it announces
//
// Numbers are varints. A sample omits the bytes that equal those of the shard's previous sample (0
// at first), so a shard without changes costs a byte a minute. Marks are omitted when there are
// none.
package history
