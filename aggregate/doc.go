// Package aggregate reads and writes the aggregation format of the Kinesis Producer Library (KPL):
// many records of a user packed into the payload of one record of a stream.
//
// # Why there is such a format
//
// A shard takes 1,000 records a second and the service bills small records as if they were large
// ones, so producers of small records pack many into one. The record of the stream is the
// container; what it carries are sub-records. Sub-records share the container's sequence number and
// arrival time; each has a partition key of its own, and counts as a position of its own by its
// index in the container, the sub-sequence number. The service knows nothing of this: it stores and
// returns containers, and whoever reads the stream unpacks them.
//
// # The payload
//
//	F3 89 9A C2 | message | MD5 of the message, 16 bytes
//
// The message is protobuf:
//
//	message AggregatedRecord {
//	  repeated string partition_key_table     = 1;
//	  repeated string explicit_hash_key_table = 2;
//	  repeated Record records                 = 3;
//	}
//	message Record {
//	  required uint64 partition_key_index     = 1;
//	  optional uint64 explicit_hash_key_index = 2;
//	  required bytes  data                    = 3;
//	  repeated Tag    tags                    = 4; // the KPL writes none; see Tags
//	}
//	message Tag {
//	  required string key   = 1;
//	  optional string value = 2;
//	}
//
// Records name their keys by row, so that a key that many share is carried once. Rows count from 0.
//
// # Reading
//
// [Aggregate.Parse] takes a payload for an aggregate when the magic is there, at least one byte
// lies between it and the checksum, the checksum matches, the message is well formed, and every row
// that a record names exists. Unknown fields are skipped; tables may come after the records. Any
// other payload is a plain record, to be delivered as it is: user data may happen to start with the
// magic. There is nothing between the two; no sub-record of a damaged aggregate is ever delivered.
// Parse tells payloads that only look like an aggregate from those that do not, because the first
// kind is worth counting.
//
// Nothing is copied: data and keys alias the payload. Parsing costs little more than the MD5 that
// it has to compute, and no allocation once an [Aggregate] has grown its tables.
//
// Sub-records are not looked into: one that is an aggregate itself is delivered as data.
//
// # Filtering by hash range
//
// The KPL packs records that belong to one shard, as far as it knows. When a shard was split
// meanwhile, the container lands in one child, and the KPL sends those sub-records that belong into
// the other once more. A reader that keeps both sees them twice; [Aggregate.Keep] drops the strays.
// Use it for streams that the KPL, or a producer of its habits, writes to. Do not use it where
// producers pack keys of several shards into one container without caring where it lands, nor on a
// stream that spreads records by itself (record distribution AUTO): the strays are the only copy
// there. Either way, what Keep returns is worth counting.
//
// # Positions
//
// A checkpoint inside a container is its sequence number and how many of its sub-records are done:
// Sub+1 of the last one. Reading resumes at the container, and skips those whose Sub is smaller
// than that count. After the last sub-record that is left, the container as a whole is done, also
// when Keep dropped some behind it or all of them.
//
// # Writing
//
// [Builder] packs records, tells beforehand what fits, and leaves a single record unwrapped. Pack
// only what goes to one shard: records of one partition key, or of keys that are known to belong to
// the same shard. The container needs a partition key, or an explicit hash key, that leads there.
//
// [Builder.AddTagged] packs [Tags] beside a record's data, such as the trace that it belongs to. A
// record with tags is wrapped also when it is alone. Nobody has to know of tags to read the data.
//
// Everything here is pure: no clock, no goroutine, no I/O, and nothing beyond the standard library.
package aggregate
