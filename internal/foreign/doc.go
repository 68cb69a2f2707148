// Package foreign reads and writes the checkpoints of older Kinesis clients, and decides how an
// application moves between them and weir: harlow/kinesis-consumer, vmware-go-kcl, kinsumer and
// lifion-kinesis.
//
// The functions are pure. They get the rows of the client's tables, the shards of the stream and
// the leases of weir's store, and return a plan. The command makes the calls. The content of a
// table is never trusted: an error names the row and a remedy.
//
// All of these clients store the sequence number of the last record that is done, and none stores a
// position inside an aggregate.
package foreign
