// Package benchserver is a Kinesis for measurements, in a process of its own: it copies answers
// that were prepared, so that many shards cost little memory and what a client does can be told
// from what the server does. All shards hold the same records. It speaks enough for weir, the SDK
// and net/http to read by polling (CBOR and JSON) and by fan-out, and knows no limits; its requests
// are not checked for more than it needs to answer them.
package benchserver

import "time"

// Stream is the name of the only stream.
const Stream = "s"

const streamARN = "arn:aws:kinesis:us-east-1:000000000000:stream/" + Stream

// ConsumerARN is that of any fan-out consumer: each is ACTIVE without having been registered.
const ConsumerARN = streamARN + "/consumer/c:1"

// Config says what is served.
type Config struct {
	TLS     bool // with HTTP/2 and HTTP/1.1 by ALPN
	Shards  int  // at least 1
	Records int  // of each shard; 0 makes the shards idle
	Page    int  // the most records of a page or event, 10,000 by default
	Bytes   int  // of data in each record, at least 1
	// Keys is how many partition keys there are, each as often as the others, or with Zipf the
	// first most often; 0 is one for each record.
	Keys int
	Zipf bool
	// Live makes each page say that it reaches to the tip, so that it is paced like one of a live
	// stream.
	Live bool
	// Delay comes before each answer and stands for the way to the service and back. The SDK's
	// client is upset by answers that come before its request has been written to the end; a
	// millisecond is enough.
	Delay time.Duration
	// Pause comes after each 64 KiB of a page, so that many are under way at the same time.
	Pause time.Duration
	// Log keeps which reads came when, for [Stats].Reads.
	Log bool
}

// Read is a call of GetRecords.
type Read struct {
	At    time.Duration // since the statistics began
	Shard int
	From  int // the index of the record it asked for
}

// Stats are what happened since they were last begun anew.
type Stats struct {
	Calls       map[string]int // by operation
	Length      time.Duration
	Burst       int // the most calls within 100 ms, on a grid of 10 ms
	Fewest      int // calls of GetRecords for one shard
	Most        int
	Together    int // the most calls of GetRecords at the same time
	Connections int // now
	Accepted    int // connections
	Reads       []Read
}

// Requests is the number of all calls.
func (s *Stats) Requests() (n int) {
	for _, calls := range s.Calls {
		n += calls
	}
	return n
}
