// Package s3sink writes the records of a stream into objects in S3. Each record is in exactly one
// object, and the records of a shard are in order. Crashes, pauses and repetitions do not change
// that.
//
//	sink, err := s3sink.New(s3.NewFromConfig(cfg), "my-bucket", s3sink.Options{Prefix: "raw"})
//	...
//	err = consumer.RunPull(ctx, sink.PullHandler())
//
// # Objects
//
// An object contains consecutive records of one shard as lines of JSON, compressed with gzip:
//
//	raw/orders/dt=2026-11-24/hour=03/shardId-000000000007-4959….ndjson.gz
//
// The key contains the hour (in UTC) in which the first record arrived at the service, the shard,
// and the sequence number of that record. An object ends when the hour changes, when it reaches a
// size or an age, when the memory is full, and at the end of the term or of the shard. It never
// ends inside an aggregate.
//
// # The chain
//
// Each shard has a chain of small objects called links. The chain gives each record a unique place:
//
//	raw/_weir/orders/shardId-000000000007/start
//	raw/_weir/orders/shardId-000000000007/943504…
//
// The name of a link contains the position at which the link begins. The link states which object
// contains the records from there on, and up to which position: {"at": …, "to": …, "object": …}.
// The next link begins at that position. A writer first writes the link, on the condition that no
// link with its name exists. It then writes the object, on the condition that no object with its
// key exists. If another writer has written the link first, the writer uses the existing link. So
// there is only one chain, for any number of writers, without a lease or an epoch. A writer that
// was paused and continues late writes either the right data or nothing.
//
// A writer may die after it wrote the link and before it wrote the object. The next owner of the
// shard then reads the same records again and writes the object. Only the newest link can lack its
// object, and only until the shard has an owner again.
//
// The name of a link contains the number of digits of the sequence number, in three digits, and
// then the sequence number. Every digit is subtracted from 9. The newest link is therefore listed
// first, and a single request finds it.
package s3sink
