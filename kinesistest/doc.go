// Package kinesistest runs an embedded Amazon Kinesis Data Streams server for tests and
// development. It is to Kinesis what net/http/httptest is to HTTP. The server runs in the process
// of the test. It listens on a free port of the loopback interface, or on a network in memory. AWS
// SDKs of all languages can use it.
//
//	func TestOrders(t *testing.T) {
//		s := kinesistest.NewServer(t)
//		s.CreateStream("orders", 2)
//		client := s.Client() // a *kinesis.Client of the AWS SDK
//		...
//		s.Split("orders", "shardId-000000000000")
//		...
//		for _, r := range s.Records("orders") { ... }
//	}
//
// Package weirtest runs weir's consumers against this server. docs/testing.md shows complete tests.
//
// # What it serves
//
// The server supports JSON 1.1 and CBOR 1.1, over HTTP/1.1 and HTTP/2, with and without TLS. It
// serves every operation on streams, shards, records, consumers, queues, tags, policies and account
// settings.
//
// Streams really split and merge. Parent shards close and keep their records, and readers learn the
// child shards at the end of a parent. Sequence numbers and hash ranges have the values that the
// service would assign. UpdateShardCount creates the same intermediate shards as the service.
// Records and closed shards expire with the retention period. Iterators expire after 5 minutes, and
// tokens of listings after 300 seconds.
//
// SubscribeToShard answers with a real event stream, over HTTP/2 and HTTP/1.1. The stream begins
// with the initial-response. It then sends events as soon as records are put, and an empty event
// after every 5 seconds without records. It ends after 5 minutes, or at the end of the shard, where
// the last event names the child shards.
//
// A consumer has at most one subscription to a shard. A second call fails during the first 5
// seconds of a subscription. Later it takes the subscription over. The ContinuationSequenceNumber
// of an event with records is the sequence number of its last record. In an empty event it is a
// number that no record has, and it increases with time.
//
// Queues deliver the records of an on-demand stream with visibility timeouts, receive counts and
// dead letters. A receive waits for a record, also in virtual time. [Server.CreateQueue] creates a
// queue, and [Server.QueueState] counts its records. [Config.Queues] selects the behaviours that
// the service does not document.
//
// With the race detector, use a separate client for each subscription. The SDK decodes all event
// streams of one client with the same unguarded buffer.
//
// The limits of the service apply unless [Config.NoLimits] is set:
//
//   - 5 reads and 2 MiB a second from a shard
//   - 1,000 records and 1 MiB a second into a shard; PutRecords fails single entries
//   - 1 SubscribeToShard call and 2 MiB a second for each pair of consumer and shard
//   - the calls per second of each operation
//
// Errors have the types of the service and, where known, its texts. docs/kinesistest.md lists the
// intended differences from the service.
//
// # Limitations
//
// The server is not for production. It keeps records in memory, up to [Config.MaxBytes], and they
// are lost when it stops. It has a single account. It requires signatures but does not verify them.
// It stores policies and keys, but they have no effect. On-demand streams do not grow
// automatically. Channels are not served. Where the real service is known to behave in
// two ways, [Config] has a switch.
//
// By default the server listens on the loopback interface. It answers only requests whose Host
// header is a loopback name or one of [Config.Hosts].
//
// # Faults
//
// [Server.Control] registers a function that is called for each call. The function can delay the
// call, return an error in place of the answer, fail single entries of PutRecords, or rewrite the
// answer. It can also cut the connection: before the call is carried out, after it, or in the
// middle of the answer. [SubscriptionFault] describes the faults of an event stream. Examples are
// exceptions, a cut in the middle of an event, a silent open connection, and a missing first frame.
// [Server.Requests] returns the number of calls.
//
// # Virtual time
//
// With [Config.InMemory], the server and its clients can run in a testing/synctest bubble. The
// server uses package time and no ticker, so days pass in milliseconds in a bubble. Create the
// clients inside the bubble, with [Server.Client], [Server.HTTPClient] or [Server.Transport].
//
// Connections have goroutines, so the bubble ends only after [Server.Close]. A server from
// NewServer closes itself in time if NewServer received the bubble's own *testing.T.
package kinesistest
