package producer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire"
)

// Options say where a [Producer] writes to, and how. Stream is required. The zero value of every
// other field is its default.
type Options struct {
	// Stream is the stream to write to, by name or ARN. Required.
	Stream string

	// Unordered gives up the order of each key. A shard can then have several requests in flight,
	// and a record that is sent again may follow newer records of its key.
	Unordered bool
	// NoAggregation sends each record as a separate record of the stream, for consumers that cannot
	// unpack. Unless Unordered is set, a key then has a throughput of one record per round trip.
	NoAggregation bool
	// Numbered stores a number with each record, so that consumers with weir's Options.DropRepeats
	// recognize a record that the producer sent again after an unclear answer. Other consumers
	// ignore the numbers. Records are packed even if they are alone. A record that cannot be packed
	// has no number, and its result then has Unnumbered set: a record of about 1 MiB or more, an
	// aggregate in Data, each record on a stream that distributes records by itself, and each
	// record while the shards are unknown. Numbered cannot be combined with Unordered and
	// NoAggregation. Make a new Producer in a process that continues from a copy of another one,
	// such as a snapshot of a virtual machine: two producers must not use the same numbers.
	Numbered bool
	// StopOnFailure ends the sending after the first record that fails. The waiting records then
	// fail with [ErrStopped] without being sent, and Put returns ErrStopped. Requests in flight
	// still get their answers. Unless Unordered is set, the stored records of each key are
	// therefore the first ones that were put. By default a record that fails does not affect
	// others.
	StopOnFailure bool

	// MaxRecords is how many records the producer holds, 1 to 10,000,000. Put blocks beyond that.
	// Defaults to 100,000. A record counts until its callback has returned.
	MaxRecords int
	// MaxBytes is the limit for bytes of data, keys and tags in the buffer, 16 MiB to 1 TiB.
	// Defaults to 64 MiB.
	MaxBytes int

	// Linger is how long a record waits for others before it is sent, 1 ms to 1 min. Defaults to 50
	// ms. A shard with enough records for a request does not wait. Packed records cost less, so a
	// longer time saves money. The KPL's name for it is RecordMaxBufferedTime.
	Linger time.Duration
	// MaxAge limits how long after Put a record may wait, 100 ms to 168 h. After that the record
	// fails with [ErrExpired]. 0, the default, is no limit. A record in flight fails only after its
	// answer, and only if it was not stored. After a failed request a shard pauses for at most half
	// of MaxAge. The KPL's name for it is RecordTtl, with a default of 30 s.
	MaxAge time.Duration
	// MaxRequests limits the requests in flight, 1 to 1,000. Defaults to 16. Unless Unordered is
	// set, a shard has at most one request in flight.
	MaxRequests int

	// FirstShare is the part of each shard's limits that the producer uses at first, 0.01 to 1.
	// Defaults to 0.25. The part doubles each second until the first refusal, which lowers it. A
	// program that writes alone to a stream for a short time can begin with 1. In the KPL, this
	// part is RateLimit, in percent, and stays constant.
	FirstShare float64

	// Encode replaces the data of each record. An example is payload.Gzip{}.Encode of package
	// payload. Put and TryPut call it, concurrently, and return its error. It may return its
	// argument, and must not change it. The limits for records and the buffer apply to its result.
	// By default data stay as they are.
	Encode func(ctx context.Context, data []byte) ([]byte, error)

	// Events are called when something happens.
	Events Events
	// Logger gets log lines. Defaults to [slog.Default].
	Logger *slog.Logger
}

// Limits for a record with its key: the highest that a stream can have, and the default.
const (
	largestRecord = 10 << 20
	usualRecord   = 1 << 20
)

// parse returns the options with their defaults, and the stream. The error has all problems.
func (o Options) parse(client Client) (Options, streams.Stream, error) {
	var problems []error
	problem := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("producer: "+format, args...))
	}
	if wire.IsNil(client) {
		problem("client is nil")
	}
	var stream streams.Stream
	if o.Stream == "" {
		problem("Options.Stream is required")
	} else if parsed, err := streams.Parse(streams.RegionOf(client), o.Stream); err != nil {
		problem("Options.Stream: %w", err)
	} else {
		stream = parsed
	}
	number := func(field string, value *int, usual, low, high int) {
		switch {
		case *value == 0:
			*value = usual
		case *value < low || *value > high:
			problem("Options.%s is %d, it must be %d to %d", field, *value, low, high)
		}
	}
	number("MaxRecords", &o.MaxRecords, 100_000, 1, 10_000_000)
	number("MaxBytes", &o.MaxBytes, 64<<20, 16<<20, 1<<40)
	number("MaxRequests", &o.MaxRequests, 16, 1, 1000)
	duration := func(field string, value *time.Duration, usual, low, high time.Duration) {
		switch {
		case *value == 0:
			*value = usual
		case *value < low || *value > high:
			problem("Options.%s is %v, it must be %v to %v", field, *value, low, high)
		}
	}
	duration("Linger", &o.Linger, 50*time.Millisecond, time.Millisecond, time.Minute)
	duration("MaxAge", &o.MaxAge, 0, 100*time.Millisecond, 168*time.Hour)
	switch {
	case o.FirstShare == 0:
		o.FirstShare = firstShare
	case !(o.FirstShare >= 0.01 && o.FirstShare <= 1): // also NaN
		problem("Options.FirstShare is %v, it must be 0.01 to 1", o.FirstShare)
	}
	if o.Numbered && (o.Unordered || o.NoAggregation) {
		problem("Options.Numbered cannot be combined with Unordered or NoAggregation, because only packed records in order have numbers: leave one out")
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, stream, errors.Join(problems...)
}
