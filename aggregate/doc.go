// Package aggregate reads and writes the aggregation format of the Kinesis Producer Library (KPL).
// The format packs many records of a user into the payload of one record of a stream.
//
// # Purpose of the format
//
// A shard accepts 1,000 records per second, and Kinesis charges small records like larger ones.
// Producers therefore pack many small records into one. The record of the stream is the container,
// and its contents are sub-records. Sub-records share the container's sequence number and arrival
// time. Each has its own partition key. Its position is its index in the container, the
// sub-sequence number. Kinesis does not know the format. It stores and returns containers, and the
// readers of the stream unpack them.
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
// Records refer to their keys by row, so that a key that many records share is stored once. Rows
// count from 0.
//
// # Reading
//
// [Aggregate.Parse] recognizes a payload as an aggregate if all of these conditions are true: it
// begins with the magic, at least one byte is between magic and checksum, the checksum matches, the
// message is well formed, and every row that a record refers to exists. Unknown fields are skipped.
// Tables may follow the records.
//
// Any other payload is a plain record and must be delivered unchanged, because user data may begin
// with the magic by accident. Sub-records of a damaged aggregate are never delivered. If a payload
// only begins like an aggregate, Parse returns an error, because such payloads are worth counting.
//
// Nothing is copied: data and keys refer to the payload. Parsing costs little more than the MD5,
// which is necessary. It causes no allocation once the tables of an [Aggregate] are large enough.
//
// The data of sub-records are not parsed. A sub-record that is itself an aggregate is delivered as
// data.
//
// # Filtering by hash range
//
// The KPL packs records that belong to the same shard according to its information. If the shard
// was split since, Kinesis stores the container in one child. The KPL then sends the sub-records of
// the other child again. A reader that keeps all sub-records gets these twice. [Aggregate.Keep]
// drops them from the first container.
//
// Use Keep for streams that are written by the KPL or by producers with the same behaviour. Do not
// use it if producers pack keys of several shards into one container, or on a stream with record
// distribution AUTO. There the dropped sub-records would be the only copies. On any stream, count
// the dropped sub-records. Keep returns their number.
//
// # Positions
//
// A checkpoint inside a container consists of its sequence number and the number of finished
// sub-records, which is Sub+1 of the last one. Reading resumes at the container and skips
// sub-records whose Sub is smaller than that number. After the last remaining sub-record the whole
// container is done, even if Keep dropped sub-records after it. A container without remaining
// sub-records is done at once.
//
// # Writing
//
// [Builder] packs records, reports in advance whether a record fits, and does not pack a single
// record. Only pack records for one shard: of one partition key, or of keys that are known to
// belong to the same shard. The container needs a partition key or an explicit hash key that
// selects this shard.
//
// [Builder.AddTagged] stores [Tags] with a record, such as the trace that it belongs to. A record
// with tags is packed even if it is alone. Readers need not support tags to read the data.
//
// [Builder.AddNumbered] stores a [Number] with a record, by which consumers recognize records that
// a producer sent again. The numbers are in field 2000 of the AggregatedRecord. Readers that do not
// know the field skip it, as protobuf requires.
//
// The package is pure: it uses no clock, no goroutine, no I/O, and only the standard library.
package aggregate
