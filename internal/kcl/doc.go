// Package kcl reads and writes the lease table of the Kinesis Client Library (KCL) for Java, and
// decides how an application moves between the KCL and weir.
//
// The functions are pure: they get the items of the table, the shards of the stream and the leases
// of the store, and return a plan. Package leasetable makes the calls of DynamoDB. The content of a
// table is never trusted. Every item is checked, and an error names the item and a remedy.
//
// A checkpoint of the KCL is the last record that is done: a sequence number, and the index of a
// user record inside an aggregate of the KPL. A [shard.Position] counts the sub-records that are
// done, so index 3 is a count of 4.
package kcl
