// Package benchserver is a Kinesis for measurements, in a separate process. It copies prepared
// answers, so that many shards need little memory and the client's cost can be separated from the
// server's. All shards have the same records. It supports weir, the SDK and net/http by polling
// (CBOR and JSON), by fan-out and for puts, and has no limits. It only checks the parts of requests
// that it needs.
package benchserver

import "time"

// Stream is the name of the only stream.
const Stream = "s"

const streamARN = "arn:aws:kinesis:us-east-1:000000000000:stream/" + Stream

// ConsumerARN is the ARN of a fan-out consumer: each is ACTIVE without registration.
const ConsumerARN = streamARN + "/consumer/c:1"

// Config configures the server.
type Config struct {
	TLS     bool // with HTTP/2 and HTTP/1.1 by ALPN
	Shards  int  // at least 1
	Records int  // of each shard; 0 makes the shards idle
	Page    int  // maximum records of a page or event, 10,000 by default
	Bytes   int  // of data in each record, at least 1
	// Keys is the number of partition keys, with equal frequency, or with Zipf's distribution; 0 is
	// one for each record.
	Keys int
	Zipf bool
	// Live makes each page report that it reaches the tip, so that it is paced like a live stream.
	Live bool
	// Delay delays each answer and simulates the network latency. The SDK's client fails on answers
	// before its request has been written completely; a millisecond is enough.
	Delay time.Duration
	// Pause is a pause after each 64 KiB of a page, so that many are in progress at once.
	Pause time.Duration
	// Log records the times of reads for [Stats].Reads.
	Log bool
}

// Read is a call of GetRecords.
type Read struct {
	At    time.Duration // since the statistics began
	Shard int
	From  int // the index of the requested record
}

// Stats are the statistics since the last reset.
type Stats struct {
	Calls       map[string]int // by operation
	Length      time.Duration
	Burst       int // maximum of calls within 100 ms, on a grid of 10 ms
	Fewest      int // minimum of GetRecords calls per shard
	Most        int
	Together    int // maximum of concurrent GetRecords calls
	Connections int // currently open
	Accepted    int // connections in total
	Reads       []Read
}

// Requests returns the number of all calls.
func (s *Stats) Requests() (n int) {
	for _, calls := range s.Calls {
		n += calls
	}
	return n
}
