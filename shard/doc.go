// Package shard models the shards of a stream without making any calls: their lineage, their hash
// ranges, and the positions inside them.
//
// # Lineage
//
// A shard is split into two children, or is merged with its neighbour into one child. The records
// of a partition key then move from the parent to the child. The order of a key is therefore kept
// only if a child is read after all of its parents. A [Graph] stores the parents of each shard. If
// a listing lacks a parent, that parent has left the stream because its last record expired. Its
// children do not wait for it.
//
// # Hash ranges
//
// A partition key belongs to the shard whose [HashRange] contains the MD5 of the key, read as a
// 128-bit number. The ranges of the open shards cover the whole space without overlap. [Holes]
// finds the parts that a set of ranges does not cover.
//
// # Positions
//
// A [Position] is the place where reading resumes. It is either [Oldest], [Latest], [At] or [End],
// or a sequence number and a count of finished sub-records. An aggregate has many sub-records with
// one sequence number. [Position.Compare] orders the positions of one shard. Positions of different
// shards cannot be compared.
//
// The package is pure: it uses no clock, no goroutine, and no I/O. All types are values and safe
// for concurrent use once they are made.
package shard
