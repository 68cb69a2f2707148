// Package dynamostore keeps leases in DynamoDB. One on-demand table can contain any number of
// applications.
//
//	store := dynamostore.New(dynamodb.NewFromConfig(cfg), dynamostore.Options{Table: "weir"})
//
// # The table
//
// The partition key "app" is the name of the application. The sort key "row" identifies one of its
// rows:
//
//	lease/STREAM/SHARD     one lease
//	group/worker/SESSION   one session of a worker
//	group/leader           the leader, the paused streams, and a count of the changes to leases
//	history/MINUTE/SESSION the history that a session wrote, beginning with a minute
//
// Only [Store.Migrate] creates the table. Without the table every call fails with an error that
// wraps [lease.ErrSetup] and shows the commands that create the table. [Policy] contains the
// permissions that a worker needs.
//
// # Cost
//
// An idle heartbeat is one write of the worker's row, and one consistent read of the rows of the
// leader and of all workers, for any number of leases. Each new checkpoint is one more write, which
// includes the load. Each released lease is one more read and write. A report with released leases
// is one more write for their announcement, and one for each worker that receives some of them.
//
// A worker reads its leases only after another process has changed at least one of them. It reads
// only the changed leases if its row contains their keys. The row contains them if there was only
// one change since the worker's last heartbeat, and if that change concerned at most eight leases
// with short keys. Otherwise the worker reads all leases of the application. For each of its views,
// the leader reads the rows of the workers. It reads the leases after a change, and at least once a
// minute. [Store.Apps] scans the table, but no running worker does.
//
// All rows of an application share a partition key. DynamoDB allows at least a thousand writes per
// second for one key, and splits a busier key.
//
// # Consistency
//
// All reads except those of the history are strongly consistent. Each write changes one row, so the
// store needs no transactions. Operations on several rows are safe because of their order. A row
// that announces a change is written after the change and before the call returns. A reader reads
// the announcement before the announced rows. A reader may therefore read too often, but never
// misses a change.
//
// Two mechanisms handle a process that dies between a change and its announcement. Each heartbeat
// contains a fingerprint of the leases that the worker believes to hold, and the leader notifies a
// session whose fingerprint differs from its leases. A view never uses leases that were read more
// than a minute ago.
package dynamostore
