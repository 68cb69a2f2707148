// Package history is the form in which workers report how their shards stood over time: a sample a
// minute for each shard, some minutes to a chunk. It is pure. A store keeps chunks without looking
// into them ([lease.Historian]); the page reads them, and trusts none.
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
//	    shard  twice its number and one more, of an ID like shardId-000000000007; of any other
//	           twice its length, and the ID
//	  samples  for each shard of the table, in its order: a mask, 0 for one that was not held,
//	           and the bytes that it announces
//
// Numbers are varints. Of a sample's bytes those are left out that are as they were in the shard's
// sample before, 0 at first, so a shard of which nothing changes costs a byte a minute. Marks are
// left out when there are none.
package history
