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
//	group/leader           who leads, which streams are paused, and a count of the changes to leases
//
// [Store.CreateTable] makes the table; nothing else does. Without it every call fails with an error
// that wraps [lease.ErrSetup] and shows the commands. [Policy] is the least that a worker has to be
// allowed.
//
// # What it costs
//
// A beat that has nothing to say is one write of the worker's row and a consistent read of the
// leader's, however many leases the worker holds. Each moved checkpoint is one more write, with its
// load, and so is each lease that is given back, beside one for the news of it. A worker reads
// leases only after others changed some of its own: those that changed, when its row names them
// (one change since its last beat, of at most eight leases), else all of the application's. The
// leader also reads the rows of the workers with each of its views, and the leases after a change
// and twice a minute. [Store.Apps] scans the table; nothing that runs all the time does. All rows
// of an application share a partition key; DynamoDB gives such a key a thousand writes per second
// at least, and splits it while it is busier.
//
// # Consistency
//
// All reads are strongly consistent, each write is a conditional write of one row, and nothing
// needs a transaction. What spans rows is made safe by order: a row that announces a change is
// written after the change and before the call returns, and a reader looks at the announcement
// before it looks at what is announced. So a reader may look too often, never too seldom. For a
// process that dies between a change and its announcement there are two nets: the leader tells
// sessions whose fingerprint disagrees with the leases, and a view reads the leases at least once a
// minute.
package dynamostore
