// Package shard holds what is known about the shards of a stream without asking anybody: their
// lineage, their hash ranges, and positions inside them.
//
// # Lineage
//
// A shard is split into two children or merged with its neighbour into one child. Records of one
// partition key move from parent to child at that moment, so the order of a key is kept only by
// reading a child after all of its parents. A [Graph] knows who descends from whom. A parent that
// the listing does not name any more has left the stream (its last record expired), and nobody
// waits for it.
//
// # Hash ranges
//
// A partition key belongs to the shard whose [HashRange] contains the MD5 of the key, read as a
// 128-bit number. The ranges of the open shards tile the whole space; [Holes] finds where a set of
// ranges does not.
//
// # Positions
//
// A [Position] says where reading resumes. It is a sequence number together with how much of that
// record is done (an aggregate holds many records under one sequence number), or one of the
// sentinels [Oldest], [Latest], [At] and [End]. Positions of one shard are ordered by
// [Position.Compare]; those of different shards are not comparable.
//
// Everything here is pure: no clock, no goroutine, no I/O. All types are values and safe for
// concurrent use once made.
package shard
