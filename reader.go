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
	// Reading selects [Polling] (the default), which uses throughput that all readers of the stream
	// share, or [FanOut] with the registered consumer FanOutName. While fan-out is not available,
	// shards are polled.
	Reading Reading
	// FanOutName is the name of that consumer, 1 to 128 characters from a-z, A-Z, 0-9, _ . -.
	// FanOut requires FanOutName or FanOutARN. Do not use the consumer of an application or of
	// another Reader: the Reader takes over its subscriptions.
	FanOutName string
	// FanOutARN is the ARN of that consumer, in place of FanOutName. The consumer has to belong to
	// the stream, and FanOutConsumer has to be [ExistingConsumer].
	FanOutARN string
	// FanOutConsumer says whether reading registers the consumer and deregisters it at the end.
	// Defaults to [ExistingConsumer]: neither.
	FanOutConsumer Registration
	// Transport is as in [Options].
	Transport Transport
	// Logger gets log lines about fan-out. Defaults to slog.Default().
	Logger *slog.Logger
}

// Registration says whether a [Reader] registers the consumer that it needs for [FanOut]. AWS bills
// a consumer by the shard and hour for as long as it is registered.
type Registration int

const (
	// ExistingConsumer requires that the consumer is registered. Otherwise reading fails with
	// [ErrNoConsumer]. The default.
	ExistingConsumer Registration = iota
	// TemporaryConsumer registers the consumer if there is none, and deregisters it when reading
	// ends. A consumer that was registered before stays. If the process is killed, the consumer
	// stays registered.
	TemporaryConsumer
	// KeptConsumer registers the consumer if there is none, and never deregisters it.
	KeptConsumer
)

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
	if err := opts.checkFanOut(region, s); err != nil {
		problems = append(problems, err)
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	if err := opts.Transport.check("ReaderOptions"); err != nil {
		problems = append(problems, err)
	}
	opts.Polling.check("ReaderOptions", func(option, format string, args ...any) {
		problems = append(problems, badOption(option, format, args...))
	})
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

// Batches yields the same records as Records in batches: each has the records of one read of one
// shard, or a part of them. Shards take turns. A batch without records marks the end of a shard.
// The batches have no checkpoint.
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

// checkFanOut returns an error for invalid options of fan-out.
func (o *ReaderOptions) checkFanOut(region *string, s streams.Stream) error {
	switch {
	case o.Reading < ByPolling || o.Reading > ByFanOut:
		return badOption("ReaderOptions.Reading", "%d must be ByPolling or ByFanOut", o.Reading)
	case o.FanOutConsumer < ExistingConsumer || o.FanOutConsumer > KeptConsumer:
		return badOption("ReaderOptions.FanOutConsumer", "%d must be ExistingConsumer, TemporaryConsumer or KeptConsumer", o.FanOutConsumer)
	case o.Reading == ByPolling && (o.FanOutName != "" || o.FanOutARN != "" || o.FanOutConsumer != ExistingConsumer):
		return badOption("ReaderOptions.FanOutName", "or FanOutARN or FanOutConsumer is set although ReaderOptions.Reading is not FanOut")
	case o.Reading == ByPolling:
	case o.FanOutARN != "":
		return o.checkFanOutARN(region, s)
	case o.FanOutName == "":
		return badOption("ReaderOptions.FanOutName", "is empty; fan-out needs the name of a registered consumer")
	case !appForm.MatchString(o.FanOutName):
		return badOption("ReaderOptions.FanOutName", "%.140q must be 1 to 128 of a-z, A-Z, 0-9, _ . -", o.FanOutName)
	}
	return nil
}

// checkFanOutARN returns an error for an invalid FanOutARN.
func (o *ReaderOptions) checkFanOutARN(region *string, s streams.Stream) error {
	of, err := streams.ParseConsumer(region, o.FanOutARN)
	switch {
	case err != nil:
		return badOption("ReaderOptions.FanOutARN", "is wrong: %w", err)
	case o.FanOutName != "":
		return badOption("ReaderOptions.FanOutName", "and ReaderOptions.FanOutARN are both set: name the consumer in one way")
	case o.FanOutConsumer != ExistingConsumer:
		return badOption("ReaderOptions.FanOutConsumer", "is set although ReaderOptions.FanOutARN names an existing consumer")
	case s.Name != "" && (of.Name != s.Name || s.ARN != "" && of.ARN != s.ARN):
		return badOption("ReaderOptions.FanOutARN", "%q is not of the stream %s", o.FanOutARN, o.Stream)
	}
	return nil
}
