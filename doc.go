// Package weir is a client for Amazon Kinesis Data Streams: groups of workers share the shards of a
// stream, save their progress, follow every split and merge in order, and continue when a worker
// dies.
//
// # Workers
//
// A [Consumer] is one worker of an application. [Consumer.Run] joins the other workers through a
// store of leases, reads the shards that are assigned to this worker, and calls a [Handler] with
// their records, batch by batch:
//
//	shard → lease → source → batch → handler → checkpoint
//
//	  the leader, one of the workers, lists the shards and assigns leases
//	  a lease is held as long as the worker's heartbeat reaches the store, once a second
//	  a source reads the shard from the lease's position, by polling or by fan-out
//	  a batch is some consecutive records of one shard; KPL aggregates are unpacked
//	  the handler returns nil when they are done
//	  the checkpoint goes to the store with the next heartbeat, under the lease's epoch
//
// [RecordFunc] is a handler for single records. [Consumer.RunShards] makes a handler for each
// shard, and may begin reading at a position that a sink stores. With [Consumer.RunPull], a
// function pulls the batches of a shard in its own loop. [Options].OnEvent gets the events of
// package event.
//
// # What is promised
//
// Each record is handled at least once: the checkpoint passes a record only after a handler call
// with that record returned nil, or marked the record as done. Records with the same partition key
// are handled in the order of the stream, even through splits, merges, handoffs and crashes: a
// child shard begins after all of its parents were handled to their ends. At any instant, the lease
// of a shard is valid for at most one worker. A checkpoint never moves back. A shard that a worker
// cannot read moves to another worker. When Run returns without an error, progress is saved and the
// leases are free or held by other workers.
//
// Records that a handler completed right before its worker was killed, about the last second of
// them, are handled again by the next worker. A handler that ignores the end of its context may
// still run when the handler of the next owner begins. With [Batch.Epoch], a database can refuse
// the writes of the older handler.
//
// # Stores
//
// Leases live in DynamoDB (store/dynamostore), in Postgres, MySQL, MariaDB, or a SQLite file for
// the processes of one machine (store/sqlstore), in Redis or Valkey (store/redisstore, a separate
// module), in memory (store/memstore), or in anything that implements [lease.Store] and passes
// store/storetest.
//
// # Without an application
//
// A [Reader] reads a stream as an iterator, without a store and without other workers. Package
// kinesistest is an embedded Kinesis for tests.
package weir
