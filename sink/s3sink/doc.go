// Package s3sink writes the records of a stream into objects in S3: each record into exactly one,
// those of a shard in order, whatever crashes, pauses or repeats.
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
// shard, and its sequence number. Objects are cut where the hour changes, by size, by age and at
// the end of a shard; never inside an aggregate.
//
// # The chain
//
// What makes a record's place the only one is a chain of small objects, links, for each shard:
//
//	raw/_weir/orders/shardId-000000000007/start
//	raw/_weir/orders/shardId-000000000007/943504…
//
// A link is named by the position that it begins after, and says in which object the records from
// there on are and up to which position: {"at": …, "to": …, "object": …}. The next link begins
// there. A link is written first, under the condition that there is none of its name, and its
// object after that, under the same condition. Whoever loses the race for a link carries out what
// it says. So there is one chain, however many write, no lease or epoch is needed for it, and a
// writer that was paused and comes back late either writes what had to be written or nothing.
//
// Should a writer die after the link and before the object, the next owner of the shard reads the
// same records again and writes it. Only the newest link can be without its object, for as long as
// the shard has no owner.
//
// The digits of a link's name are those of the sequence number and its length, each taken from 9,
// so the newest link is listed first: one request finds the end of the chain.
package s3sink
