package weir

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"

	"github.com/weir-go/weir/internal/guard/guarded"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/shard"
)

// ReaderOptions configure a [Reader]. Stream is required. For every other field, the zero value
// selects the default.
type ReaderOptions struct {
	// Stream is the stream to read, by name or ARN.
	Stream string
	// Start is the position at which reading begins: [Oldest] (the default), [Latest] or [At]. If
	// Shards names a single shard, Start may also be a position in it: [shard.Before] or
	// [shard.After] a sequence number, or [Record.Position]. Children of splits and merges are read
	// from their beginning.
	Start Position
	// Shards are the IDs of the shards to read, with their descendants. By default all shards are
	// read.
	Shards []string
	// Aggregates is as in [Options].
	Aggregates Aggregates
	// UntilTip ends reading when every shard has been read to its newest record. By default a
	// Reader follows the stream for ever.
	UntilTip bool
	// Polling sets how shards are polled. Polling.Share is this Reader's share.
	Polling Polling
	// MaxMemory limits the size of the records of all shards that were read and not yet yielded, or
	// that the body of the loop is handling. 16 MiB to 1 TiB. Defaults to 128 MiB. The shares of
	// shards, and the cases in which a record exceeds the limit, are as in [Options].
	MaxMemory int
	// FanOut makes the service push records to the Reader. By default the Reader polls, with
	// throughput that all readers of the stream share.
	FanOut FanOut
	// Transport is as in [Options].
	Transport Transport
	// Logger gets the log lines of the Reader. Defaults to slog.Default().
	Logger *slog.Logger
}

// Reader reads a stream without an application: it has no store and no checkpoint, and shares
// nothing with other readers. Its methods may be called concurrently. Each call reads from the
// start again, and has its own MaxMemory.
//
// A Reader reads all shards concurrently, ahead of the loop that receives the records. A polled
// shard without new records needs neither a goroutine nor a timer.
type Reader struct {
	client Kinesis
	opts   ReaderOptions
	source streams.Stream
}

// NewReader checks the options. It does no I/O. client is usually a *kinesis.Client; see [Kinesis].
func NewReader(client Kinesis, opts ReaderOptions) (*Reader, error) {
	var problems []error
	region := streams.RegionOf(client)
	if wire.IsNil(client) {
		problems = append(problems, errNoClient)
	}
	s, err := streams.Parse(region, opts.Stream)
	if err != nil {
		problems = append(problems, fmt.Errorf("weir: %w", err))
	}
	switch opts.Start.Kind() {
	case shard.None:
		opts.Start = Oldest
	case shard.First, shard.Tip, shard.Time:
	case shard.Sequence:
		if len(opts.Shards) != 1 {
			problems = append(problems, badOption("ReaderOptions.Start", "%.200q is a position in one shard, and ReaderOptions.Shards names %d: name the one shard", opts.Start, len(opts.Shards)))
		}
	default:
		problems = append(problems, badOption("ReaderOptions.Start", "%q must be Oldest, Latest, At(a time) or a position in a shard", opts.Start))
	}
	bad := func(option, format string, args ...any) {
		problems = append(problems, badOption(option, format, args...))
	}
	opts.FanOut.check("ReaderOptions", region, []streams.Stream{s}, err != nil, bad)
	opts.FanOut.checkReader(bad)
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if err := opts.Transport.check("ReaderOptions"); err != nil {
		problems = append(problems, err)
	}
	opts.Polling.check("ReaderOptions", bad)
	if err := checkMemory("ReaderOptions", &opts.MaxMemory); err != nil {
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return &Reader{client: guarded.Client(client, panicked), opts: opts, source: s}, nil
}

// Records yields the records of all shards: in order within a shard, and parents before their
// children. Records of different shards come as they arrive. If reading fails for some time,
// Records yields an error, and tries again if the loop continues. When ctx ends, the last pair has
// its cause. If the stream does not exist, the last pair has an error that wraps
// [ErrStreamNotFound].
func (r *Reader) Records(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for b, err := range r.Batches(ctx) {
			if err != nil {
				if !yield(Record{}, err) {
					return
				}
				continue
			}
			for _, rec := range b.Records {
				if !yield(rec, nil) {
					return
				}
			}
		}
	}
}

// Batches yields the same records as Records, in batches. A batch has the records of one read of
// one shard, or a part of these records. Shards take turns. A batch without records marks the end
// of a shard. The batches have no checkpoint.
func (r *Reader) Batches(ctx context.Context) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) { r.reading().run(ctx, yield) }
}

// notFound adds [ErrStreamNotFound] to an error that says that the stream does not exist.
func notFound(err error) error {
	if errors.Is(err, streams.ErrNoStream) {
		return streams.Also("weir: ", err, ErrStreamNotFound)
	}
	return err
}
