// Package kinesistest is an embedded Amazon Kinesis Data Streams: a server for
// tests and for development, as net/http/httptest is for HTTP. It runs in the
// process of a test, on a free port of the loopback interface or on a network
// in memory, and any AWS SDK can talk to it, in any language.
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
// Package weirtest runs weir's consumers against it until something has happened, and
// docs/testing.md shows whole tests.
//
// # What it serves
//
// JSON 1.1 and CBOR 1.1, over HTTP/1.1 and HTTP/2, with TLS and without; every
// operation on streams, shards, records, consumers, tags, policies and account
// settings. Streams split and merge for real: parents close, keep their records
// and name their children at their end, sequence numbers and hash ranges are
// those of the service, and UpdateShardCount goes through the intermediate
// shards. Records expire with the retention period and closed shards with them;
// iterators expire after 5 minutes, tokens of listings after 300 seconds.
//
// SubscribeToShard answers with a real event stream, over HTTP/2 and HTTP/1.1:
// initial-response first, events as soon as records are put, empty ones every 5
// seconds in between, the end of the shard with its children, and after 5 minutes
// the end of the stream. A consumer has one subscription to a shard: another call
// is refused for 5 seconds and then takes over. A ContinuationSequenceNumber is
// the number of the last record after records; in empty events it is that of no
// record, and grows with time. Give each subscription a client of its own when
// the race detector is on: the SDK decodes all event streams of one client with
// the same unguarded buffer.
//
// The service's limits hold unless [Config.NoLimits] is set: 5 reads and 2 MiB
// a second from a shard, 1,000 records and 1 MiB a second into one, with
// failures of single entries in PutRecords, one call of SubscribeToShard and 2
// MiB a second for a consumer and shard, and the calls a second of each
// operation. Errors have the types of the service and its words, where these are
// known; docs/kinesistest.md lists what differs on purpose.
//
// # What it is not
//
// It is not for production: records are in memory, bounded by
// [Config.MaxBytes], and gone with the server. There is one account, whose
// signatures must be present and are not verified; policies and keys are kept
// and have no effect. On-demand streams do not grow by themselves. Channels
// and queues are not served. Where the real service is known to behave in two ways, [Config] has
// a switch.
//
// It listens on the loopback interface unless told otherwise, and answers only
// requests that address it by a loopback name or one of [Config.Hosts].
//
// # Faults
//
// [Server.Control] has a function asked about each call, which can delay it,
// answer an error instead, cut the connection before or after the call was
// carried out or in the middle of the answer, fail single entries of PutRecords,
// or rewrite the answer. [SubscriptionFault] has what can go wrong with an event
// stream: exceptions in it, a cut in the middle of an event, a connection that
// stays open and silent, a first frame that is missing, and more.
// [Server.Requests] counts calls.
//
// # Virtual time
//
// With [Config.InMemory] the server can live in a testing/synctest bubble with
// its clients. It tells the time by package time, so there days pass in
// milliseconds, and it keeps no ticker. Connections have goroutines, therefore
// the bubble ends only after [Server.Close], which NewServer sees to when given
// the bubble's own *testing.T. Clients must come from [Server.Client],
// [Server.HTTPClient] or [Server.Transport], made inside the bubble.
package kinesistest
