// Package kinesistest is an embedded Amazon Kinesis Data Streams: a server for tests and
// development, like net/http/httptest for HTTP. It runs in the process of a test, on a free port of
// the loopback interface or on a network in memory. Any AWS SDK can use it, in any language.
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
// Package weirtest runs weir's consumers against it, and docs/testing.md shows complete tests.
//
// # What it serves
//
// The server supports JSON 1.1 and CBOR 1.1, over HTTP/1.1 and HTTP/2, with and without TLS. It has
// every operation on streams, shards, records, consumers, tags, policies and account settings.
// Streams really split and merge: parents close, keep their records and name their children at
// their end. Sequence numbers and hash ranges are those of the service, and UpdateShardCount uses
// the intermediate shards. Records and closed shards expire with the retention period; iterators
// expire after 5 minutes, tokens of listings after 300 seconds.
//
// SubscribeToShard answers with a real event stream, over HTTP/2 and HTTP/1.1: first the
// initial-response, then events as soon as records are put, and empty events every 5 seconds in
// between. It ends with the end of the shard and its children, or after 5 minutes. A consumer has
// one subscription to a shard: another call is refused for 5 seconds and then takes over. The
// ContinuationSequenceNumber of an event with records is the number of the last record. In empty
// events it belongs to no record, and increases with time. With the race detector use a separate
// client for each subscription: the SDK decodes all event streams of one client with the same
// unguarded buffer.
//
// The service's limits apply unless [Config.NoLimits] is set: 5 reads and 2 MiB a second from a
// shard, 1,000 records and 1 MiB a second into one, with failures of single entries in PutRecords,
// one call of SubscribeToShard and 2 MiB a second for a consumer and shard, and the calls per
// second of each operation. Errors have the types and, where known, the texts of the service.
// docs/kinesistest.md lists the intended differences.
//
// # Limitations
//
// It is not for production: records are in memory, limited by [Config.MaxBytes], and are lost with
// the server. There is one account. Signatures must be present and are not verified. Policies and
// keys are stored and have no effect. On-demand streams do not grow automatically. Channels and
// queues are not served. If the real service is known to behave in two ways, [Config] has a switch.
//
// By default it listens on the loopback interface, and only answers requests that address it by a
// loopback name or one of [Config.Hosts].
//
// # Faults
//
// [Server.Control] registers a function that is called for each call. It can delay the call, return
// an error instead, cut the connection before or after the call was carried out or in the middle of
// the answer, fail single entries of PutRecords, or rewrite the answer. [SubscriptionFault] has the
// faults of an event stream: exceptions, a cut in the middle of an event, a connection that stays
// open and silent, a missing first frame, and more. [Server.Requests] counts calls.
//
// # Virtual time
//
// With [Config.InMemory] the server can run in a testing/synctest bubble with its clients. It uses
// package time and no ticker, so days pass in milliseconds there. Connections have goroutines, so
// the bubble ends only after [Server.Close]. NewServer calls it if you pass the bubble's own
// *testing.T. Clients must come from [Server.Client], [Server.HTTPClient] or [Server.Transport],
// created inside the bubble.
package kinesistest
