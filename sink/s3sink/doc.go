// Package s3sink writes the records of a stream into objects in S3: each record into exactly one
// object, and the records of a shard in order, despite crashes, pauses and repetitions.
//
//	sink, err := s3sink.New(s3.NewFromConfig(cfg), "my-bucket", s3sink.Options{Prefix: "raw"})
//	...
//	err = consumer.RunShards(ctx, sink.Handlers())
//
// # Objects
//
// An object holds consecutive records of one shard as lines of JSON, compressed with gzip:
//
//	raw/orders/dt=2026-11-24/hour=03/shardId-000000000007-4959….ndjson.gz
//
// It is named after its first record: the hour in which that arrived at the service, in UTC, the
// shard, and its sequence number. An object ends when the hour changes, by size, by age and at the
// end of a shard, but never inside an aggregate.
//
// # The chain
//
// Each shard has a chain of small objects called links, which give each record a unique place:
//
//	raw/_weir/orders/shardId-000000000007/start
//	raw/_weir/orders/shardId-000000000007/943504…
//
// A link is named after the position at which it begins. It says which object contains the records
// from there on, and up to which position: {"at": …, "to": …, "object": …}. The next link begins
// there. A link is written first, under the condition that no link of its name exists, and its
// object after that, under the same condition. A writer that loses the race for a link carries out
// the existing one. There is therefore one chain for any number of writers, without a lease or an
// epoch. A writer that was paused and continues late writes either the right data or nothing.
//
// If a writer dies after the link and before the object, the next owner of the shard reads the same
// records again and writes the object. Only the newest link can lack its object, until the shard
// has an owner again.
//
// The name of a link contains the digits of the sequence number and of its length, each subtracted
// from 9. The newest link is therefore listed first, and one request finds the end of the chain.
package s3sink
