// Package dynamostore keeps leases in DynamoDB: one on-demand table for any number of applications.
//
//	store := dynamostore.New(dynamodb.NewFromConfig(cfg), dynamostore.Options{Table: "weir"})
//
// # The table
//
// The partition key "app" is the application's name, the sort key "row" names one of its rows:
//
//	lease/STREAM/SHARD     one lease
//	group/worker/SESSION   one session of a worker
//	group/leader           the leader, the paused streams, and a count of the changes to leases
//
// Only [Store.CreateTable] creates the table. Without the table every call fails with an error that
// wraps [lease.ErrSetup] and shows the commands. [Policy] contains the permissions that a worker
// needs.
//
// # Cost
//
// An idle heartbeat is one write of the worker's row and a consistent read of the leader's row, for
// any number of leases. Each new checkpoint is one more write, which includes the load. Each lease
// that is given back is one more write, plus one for its announcement.
//
// A worker reads leases only after another process changed some of its own. It reads the changed
// ones if its row names them (one change since its last heartbeat, of at most eight leases), and
// otherwise all leases of the application. The leader also reads the rows of the workers with each
// of its views, and the leases after a change and twice a minute. [Store.Apps] scans the table. No
// running worker does that. All rows of an application share a partition key. DynamoDB allows at
// least a thousand writes per second for such a key, and splits it while it is busier.
//
// # Consistency
//
// All reads are strongly consistent, each write is a conditional write of one row, and no
// transactions are needed. Operations on several rows are safe because of their order. A row that
// announces a change is written after the change and before the call returns. A reader reads the
// announcement before it reads what is announced. A reader may therefore read too often, but never
// too rarely. Two mechanisms cover a process that dies between a change and its announcement: the
// leader notifies sessions whose fingerprint differs from the leases, and a view reads the leases
// at least once a minute.
package dynamostore
