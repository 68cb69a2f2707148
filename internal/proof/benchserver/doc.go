// Package benchserver is a Kinesis server for measurements, in a separate process. It copies
// prepared answers, so many shards need little memory, and the client's cost can be separated from
// the server's. All shards have the same records. The server supports weir, the SDK and net/http by
// polling (CBOR and JSON), by fan-out and for puts. It has no limits. It checks only those parts of
// requests that it needs.
package benchserver

import "time"

// Stream is the name of the only stream.
const Stream = "s"

const streamARN = "arn:aws:kinesis:us-east-1:000000000000:stream/" + Stream

// ConsumerARN is the ARN of a fan-out consumer. Every consumer is ACTIVE without registration.
const ConsumerARN = streamARN + "/consumer/c:1"

// Config configures the server.
type Config struct {
	TLS     bool // with HTTP/2 and HTTP/1.1, selected by ALPN
	Shards  int  // number of shards, at least 1
	Records int  // number of records in each shard; 0 makes the shards idle
	Page    int  // maximum number of records on a page or in an event; 10,000 by default
	Bytes   int  // bytes of data in each record; at least 1 if there are records
	// Keys is the number of partition keys, with equal frequencies or with Zipf's distribution. 0
	// means that each record has its own key.
	Keys int
	Zipf bool
	// Live makes each page report that it reaches the tip. The client then paces its reads as for a
	// live stream.
	Live bool
	// Delay delays each answer, to simulate network latency. The SDK's client fails if an answer
	// comes before it has written its request completely. A millisecond is enough to avoid that.
	Delay time.Duration
	// Pause is a pause after each 64 KiB of an answer to GetRecords. With it, many answers are in
	// progress at the same time.
	Pause time.Duration
	// Log records the times of reads for [Stats].Reads.
	Log bool
}

// Read is a call of GetRecords.
type Read struct {
	At    time.Duration // time since the statistics began
	Shard int
	From  int // index of the requested record
}

// Stats contains the statistics since the last reset.
type Stats struct {
	Calls       map[string]int // by operation
	Length      time.Duration
	Burst       int // maximum number of calls within 100 ms, on a grid of 10 ms
	Fewest      int // minimum number of GetRecords calls for a shard
	Most        int
	Together    int // maximum number of concurrent GetRecords calls
	Connections int // open connections
	Accepted    int // connections in total
	Reads       []Read
}

// Requests returns the total number of calls.
func (s *Stats) Requests() (n int) {
	for _, calls := range s.Calls {
		n += calls
	}
	return n
}
