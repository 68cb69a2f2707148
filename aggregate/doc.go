// Package aggregate reads and writes the aggregation format of the Kinesis Producer Library (KPL),
// which packs many records of a user into the payload of one record of a stream.
//
// # Purpose of the format
//
// A shard accepts 1,000 records per second, and the service charges small records as if they were
// large ones. Producers of small records therefore pack many into one. The record of the stream is
// the container, and its contents are sub-records. Sub-records share the container's sequence
// number and arrival time. Each has its own partition key, and its own position, given by its index
// in the container, the sub-sequence number. The service does not know the format: it stores and
// returns containers, and the readers of the stream unpack them.
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
// Records refer to their keys by row, so that a key shared by many records is stored once. Rows
// count from 0.
//
// # Reading
//
// [Aggregate.Parse] recognizes a payload as an aggregate if it begins with the magic, at least one
// byte lies between magic and checksum, the checksum matches, the message is well formed, and every
// row that a record refers to exists. Unknown fields are skipped. Tables may follow the records.
// Any other payload is a plain record, to be delivered unchanged: user data may happen to start
// with the magic. There is nothing in between: no sub-record of a damaged aggregate is ever
// delivered. Parse reports payloads that only look like an aggregate with an error, because they
// are worth counting.
//
// Nothing is copied: data and keys alias the payload. Parsing costs little more than the necessary
// MD5, and no allocation once an [Aggregate] has grown its tables.
//
// Sub-records are not examined: one that is itself an aggregate is delivered as data.
//
// # Filtering by hash range
//
// The KPL packs records that belong to one shard, as far as it knows. If a shard was split
// meanwhile, the container is stored in one child, and the KPL sends the sub-records that belong to
// the other child once more. A reader that keeps both sees them twice. [Aggregate.Keep] drops the
// strays. Use it for streams that are written by the KPL or a producer with the same behaviour. Do
// not use it if producers pack keys of several shards into one container, nor on a stream that
// distributes records itself (record distribution AUTO): there the strays are the only copy. In
// both cases the result of Keep is worth counting.
//
// # Positions
//
// A checkpoint inside a container is its sequence number and the number of finished sub-records,
// which is Sub+1 of the last one. Reading resumes at the container, and skips those whose Sub is
// smaller than that number. After the last remaining sub-record the whole container is done, even
// if Keep dropped some after it or all of them.
//
// # Writing
//
// [Builder] packs records, reports beforehand what fits, and leaves a single record unwrapped. Pack
// only records for one shard: of one partition key, or of keys that are known to belong to the same
// shard. The container needs a partition key, or an explicit hash key, that selects this shard.
//
// [Builder.AddTagged] stores [Tags] with a record, such as the trace that it belongs to. A record
// with tags is wrapped even if it is alone. Readers need not support tags to read the data.
//
// Everything here is pure: no clock, no goroutine, no I/O, and nothing beyond the standard library.
package aggregate
