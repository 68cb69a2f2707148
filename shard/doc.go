// Package shard models the shards of a stream without making any calls: their lineage, their hash
// ranges, and the positions inside them.
//
// # Lineage
//
// A shard is split into two children or merged with its neighbour into one child. At that moment
// the records of a partition key move from the parent to the child. The order of a key is therefore
// kept only if a child is read after all of its parents. A [Graph] stores which shard descends from
// which. A parent that the listing no longer names has left the stream (its last record expired),
// and its children do not wait for it.
//
// # Hash ranges
//
// A partition key belongs to the shard whose [HashRange] contains the MD5 of the key, read as a
// 128-bit number. The ranges of the open shards cover the whole space without overlap. [Holes]
// finds the parts that a set of ranges does not cover.
//
// # Positions
//
// A [Position] says where reading resumes. It is either one of the sentinels [Oldest], [Latest],
// [At] and [End], or a sequence number and a count of finished sub-records (an aggregate holds many
// records under one sequence number). [Position.Compare] orders the positions of one shard.
// Positions of different shards are not comparable.
//
// Everything here is pure: no clock, no goroutine, no I/O. All types are values and safe for
// concurrent use once made.
package shard
