// Package queue consumes the records of Kinesis queues.
//
// A queue belongs to an on-demand stream. It hands the records of the stream to any number of
// consumers, and delivers a record again if no consumer acknowledges it in time. There are no
// shards to lease, no checkpoints and no order. A [Consumer] needs only the queue:
//
//	c, err := queue.New(cfg, queue.Options{Queue: "orders"})
//	...
//	err = c.Run(ctx, queue.RecordFunc(func(ctx context.Context, r queue.Record) error {
//		return handle(ctx, r.Data)
//	}))
//
// If the handler returns nil, the record is acknowledged. After an error it is handled again, after
// a backoff. An error of [weir.Reject] sets it aside. Delivery is at least once: a handler must
// tolerate a record that is delivered again. [Record.Key] identifies it.
//
// # Receive counts
//
// A queue counts how often it has delivered a record, and moves a record with more than
// MaxReceiveCount deliveries to its dead letters, even if no handler has failed. A crash, a lost
// answer or a release spends one delivery. A Consumer therefore fetches few records ahead, extends
// the time for which a record is hidden, and keeps a failed record in the process until it handles
// the record again. [Counts].Spent is the number of deliveries that were spent without a failure of
// a handler.
//
// # Calls
//
// The AWS SDK does not have the operations of queues yet. [Client] makes these calls with the
// region, credentials, HTTP client and endpoint of an [aws.Config]. [API] is the part that a
// Consumer needs.
package queue
