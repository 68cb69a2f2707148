// Package sink applies records exactly once to a database that the user brings. A transaction
// contains the effects of some records of a shard, and the position after these records.
//
// Package sqlsink does this for SQL databases and is all that most programs need. Use this package
// for another database with transactions: implement [Rows], test it with package sinktest, and pass
// it to [New].
//
// # Partitions
//
// Without partitions, the batches of a shard are applied one after the other, and the shard has one
// row. With [Options].Partitions, the keys of a shard are divided into partitions, whose batches
// are applied at the same time. Each partition has a row with its own position, which moves in the
// transaction of its effects. So effects of one key are applied in the order of its records, and
// never side by side.
//
// The row of the shard then has the position before which the effects of all partitions are stored.
// Reading begins there, and each partition skips the records that it already has. This position
// moves in a transaction of its own, about once a second while records are handled. A partition
// gets its row with its first record, and a shard that has ended keeps one row alone. A partition
// without records costs nothing.
//
// # A different number of partitions
//
// The number may change between two runs, and workers with different numbers may run at the same
// time. When a worker begins to read a shard, it first writes its epoch to the row of the shard.
// From then on, earlier owners cannot make rows for the shard. The worker then writes its epoch to
// the rows that other numbers of partitions have left, so that earlier owners cannot move them. It
// skips the records that these rows cover, and removes the rows when the row of the shard has
// passed them.
package sink
