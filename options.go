package weir

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Position is where reading a shard starts or resumes; see [shard.Position].
type Position = shard.Position

// These are the positions for Options.Start, at which a new application starts. The third is
// weir.At(t).
var (
	// Oldest starts with the oldest record the stream still keeps.
	Oldest = shard.Oldest
	// Latest starts with the records that arrive from now on. "Now" is the time at which the
	// application first sees the stream, by the service's clock. This time is taken once, so a
	// worker that starts late or restarts before its first checkpoint loses nothing.
	Latest = shard.Latest
)

// At starts with the first record that arrived at t or later.
func At(t time.Time) Position { return shard.At(t) }

// ExpiredPolicy selects what happens when the service refuses a checkpoint because its records have
// left the stream, or because the stream was deleted and created again under the same name.
// [event.PositionExpired] reports each case, with every policy.
//
// Instead of refusing the checkpoint, the service may continue with the oldest record in the
// stream. weir begins reading at the last handled record. If another record comes first, weir
// reports that. weir cannot detect whether records between the last handled record and the oldest
// record were lost, so it continues reading with every policy.
type ExpiredPolicy int

const (
	// FailExpired stops the shard at the checkpoint until an operator decides, and reports that.
	// weir does not choose a new position itself, because neither the oldest nor the newest record
	// is where the application was. The default.
	FailExpired ExpiredPolicy = iota
	// OldestExpired continues with the oldest record in the stream.
	OldestExpired
	// LatestExpired continues with records that arrive from then on, by the service's clock.
	LatestExpired
)

// Options configure a [Consumer]. App is required, and so is a stream or DiscoverStreams. For every
// other field, the zero value selects the default.
type Options struct {
	// App is the name of the application. All workers with the same App share the shards and the
	// progress. Required, 1 to 128 characters of [a-zA-Z0-9_.-]. The Java KCL calls it
	// applicationName.
	App string
	// Streams are the streams to read, by name or ARN. At least one is required, or
	// DiscoverStreams. Streams are identified by name, so two streams with the same name (of
	// different accounts or regions) need two applications.
	Streams []string
	// DiscoverStreams returns streams to read in addition to Streams, by name or ARN. Run waits for
	// its first answer, and then calls it every Timing.ListInterval. After an error the previous
	// answer stays in use. DiscoverStreams has to return when ctx ends, which is after ListInterval
	// or 30 s, whichever is longer.
	//
	// A worker takes only shards of the streams in the answer. When a stream leaves the answer, the
	// worker releases its shards, and their progress stays in the store. Workers that return
	// different streams log a warning.
	DiscoverStreams func(ctx context.Context) ([]string, error)
	// Shards are the IDs of the shards to read. Their descendants are read, too. By default all
	// shards are read. Shards requires a single stream in Streams, and no DiscoverStreams.
	//
	// Set it to the same IDs in all workers, from the first start of the application. The leader
	// marks other shards as finished when it first sees them. It does not stop the reading of
	// shards that the application has already begun. If shards came and left the stream while no
	// worker ran, the key ranges of later shards decide whether they descend from a chosen one. If
	// the stream was deleted and created again, the IDs name shards of the new stream. Until weir
	// lists it, a worker may handle records of other new shards that have the IDs of its shards.
	Shards []string
	// Worker is the name of this worker in logs and reports, of at most 200 bytes. Defaults to the
	// host name and the process ID.
	Worker string

	// Start is the first position in a stream that is new to the application: [Oldest] (the
	// default), [Latest] or [At]. Shards that appear later through splits and merges are always
	// read from their beginning.
	Start Position
	// Expired says where reading continues if the records after a checkpoint have left the stream:
	// [FailExpired] (the default), [OldestExpired] or [LatestExpired].
	Expired ExpiredPolicy
	// Aggregates says how weir treats records that the KPL has packed into one: [Unpack] (the
	// default), [UnpackOwn] or [KeepPacked].
	Aggregates Aggregates
	// DropRepeats drops records that a producer sent again, and that the application has already
	// handled. It works for records with numbers: those of package producer with Options.Numbered.
	// All other records are handled as usual. The numbers of handled records are stored with the
	// checkpoint of each shard, so repeats are recognized after a restart, by another worker, and
	// in the child shards after a split or a merge. docs/guide/repeats.md describes the limits. In
	// doubt a record is handled again, and never dropped.
	//
	// Set it in all workers of the application. DropRepeats cannot be combined with KeepPacked, and
	// needs a store with lease.NoteNumbers, as all stores of weir are. If producers and shards
	// split at the same time, UnpackOwn also drops the packed records that the producer sends again
	// to the other child shard.
	DropRepeats bool
	// Filter selects the records that are handled. By default all records are handled.
	Filter Filter
	// FanOut makes the service push records to the workers. By default weir polls.
	FanOut FanOut
	// Transport selects how records are read from the service. Defaults to [AutoTransport].
	Transport Transport
	// ReuseBuffers makes weir use the memory of a batch again after the handler has returned. Data,
	// PartitionKey and SequenceNumber are valid until then, and handlers have to copy what they
	// keep. This saves a good part of the cost of reading. With WEIR_POISON=1 in the environment,
	// weir fills the memory with nonsense first, so a test finds handlers that keep records too
	// long.
	ReuseBuffers bool
	// MaxMemory limits the size of the records that were read and are not handled yet, of all
	// shards together, 16 MiB to 1 TiB. Defaults to 128 MiB. Each shard has a share, so a slow
	// handler delays only its own shard. docs/timing.md describes the shares, and when a single
	// large record exceeds the limit.
	MaxMemory int
	// Batching sets the size of the batches.
	Batching Batching
	// Concurrency makes weir handle the partition keys of a shard in parallel. By default the
	// batches of a shard are handled one after the other.
	Concurrency Concurrency
	// Retry sets the pauses before a failed batch is handled again.
	Retry Retry
	// OnFailure says when weir dead-letters a record whose handler fails, and where the dead letter
	// goes. By default weir retries each record for ever. OnFailure.Destination cannot be combined
	// with [Consumer.RunPull] and [Consumer.Records], because weir does not see there which records
	// fail.
	OnFailure FailurePolicy
	// Polling sets how shards are polled.
	Polling Polling
	// Timing sets the times of coordination: heartbeats, failover, handoff, stops, stalls.
	Timing Timing

	// Weight is this worker's share of the shards relative to that of the other workers. Defaults
	// to 1.
	Weight float64
	// MaxLeases is the largest number of shards that this worker reads at the same time. Shards for
	// which no worker has room are not read. 0, the default, is no limit. The KCL calls it
	// maxLeasesForWorker.
	MaxLeases int

	// NoHistory stops this worker from reporting the past of its shards, which the dashboard shows.
	// The report is one write a minute to a store with lease.KeepHistory, which keeps it for 3
	// hours.
	NoHistory bool

	// OnEvent is called with each event, such as [event.LeaseTaken] or [event.DeadLettered], for
	// metrics and tests. Package event says in which order, and when events are dropped. nil, the
	// default, costs nothing. One goroutine of each Run calls it, and logs in between, so a slow
	// function delays other events and the log, but nothing else. It may call the Consumer's
	// methods, except Run. [event.Join] combines several functions.
	//
	// ctx has the values of Run's context. It ends when Run returns. A panic is logged. If OnEvent
	// has not returned 5 s after everything else has ended, Run returns without it; see
	// [ErrAbandoned].
	OnEvent func(ctx context.Context, e event.Event)
	// Logger gets the log lines of the consumer. Defaults to slog.Default().
	Logger *slog.Logger
}

// checkMemory sets the default of MaxMemory, and returns an error for an invalid value.
func checkMemory(options string, bytes *int) error {
	if *bytes == 0 {
		*bytes = 128 << 20
	}
	if *bytes < 16<<20 || int64(*bytes) > 1<<40 {
		return badOption(options+".MaxMemory", "%d must be between 16 MiB and 1 TiB", *bytes)
	}
	return nil
}

var appForm = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`)

// checked returns the options with their defaults and the parsed streams, or one error with every
// problem.
func (o Options) checked(client Kinesis, store lease.Store) (Options, []streams.Stream, error) {
	var problems []error
	bad := func(option, format string, args ...any) {
		problems = append(problems, badOption(option, format, args...))
	}

	region := streams.RegionOf(client)
	if wire.IsNil(client) {
		problems = append(problems, errNoClient)
	}
	if store == nil {
		problems = append(problems, errNoStore)
	}
	if !appForm.MatchString(o.App) {
		bad("Options.App", "%.140q must be 1 to 128 of a-z, A-Z, 0-9, _ . -", o.App)
	}
	all, err := o.streams(region)
	if err != nil {
		problems = append(problems, err)
	}
	if o.Worker == "" {
		host, _ := os.Hostname()
		o.Worker = fmt.Sprintf("%s-%d", strings.ToValidUTF8(host, "_"), os.Getpid())
	}
	if len(o.Worker) > 200 {
		bad("Options.Worker", "has %d bytes, at most 200 are allowed", len(o.Worker))
	}

	o.checkShards(bad)
	switch o.Start.Kind() {
	case shard.None:
		o.Start = Oldest
	case shard.First, shard.Tip, shard.Time:
	default:
		bad("Options.Start", "%q must be Oldest, Latest or At(a time): other positions belong to one shard", o.Start)
	}
	o.Batching.check(o.Concurrency.on(), bad)
	o.Retry.check(bad)
	o.Timing.check(o.FanOut.on(), bad)
	o.Polling.check("Options", bad)
	if err := checkMemory("Options", &o.MaxMemory); err != nil {
		problems = append(problems, err)
	}
	if o.Aggregates < Unpack || o.Aggregates > KeepPacked {
		bad("Options.Aggregates", "%d must be Unpack, UnpackOwn or KeepPacked", o.Aggregates)
	}
	if o.DropRepeats && o.Aggregates == KeepPacked {
		bad("Options.DropRepeats", "cannot be combined with KeepPacked, because numbers belong to unpacked records: leave one of them out")
	}
	if o.Expired < FailExpired || o.Expired > LatestExpired {
		bad("Options.Expired", "%d must be FailExpired, OldestExpired or LatestExpired", o.Expired)
	}
	o.FanOut.check("Options", region, all, o.DiscoverStreams != nil, bad)
	if o.FanOut.Name == "" {
		o.FanOut.Name = o.App
	}
	o.OnFailure.check(bad)
	o.Filter.check(bad)
	o.Concurrency.check(o.ReuseBuffers, bad)
	if err := o.Transport.check("Options"); err != nil {
		problems = append(problems, err)
	}
	if o.Weight == 0 {
		o.Weight = 1
	}
	if !(o.Weight > 0) || math.IsInf(o.Weight, 0) {
		bad("Options.Weight", "%v must be a positive number", o.Weight)
	}
	if o.MaxLeases < 0 {
		bad("Options.MaxLeases", "%d must not be negative; 0 is no limit", o.MaxLeases)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, all, errors.Join(problems...)
}

// checkShards checks Shards.
func (o *Options) checkShards(bad func(option, format string, args ...any)) {
	if len(o.Shards) > 0 && (len(o.Streams) != 1 || o.DiscoverStreams != nil) {
		bad("Options.Shards", "names shards of a single stream: name one stream in Options.Streams, and leave out DiscoverStreams")
	}
	for _, id := range o.Shards {
		if id == "" || len(id) > lease.MaxNameBytes || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
			bad("Options.Shards", "%.60q is not the ID of a shard, such as shardId-000000000001", id)
		}
	}
}

// streams parses the streams of the options, without those of DiscoverStreams.
func (o Options) streams(region *string) ([]streams.Stream, error) {
	if len(o.Streams) == 0 && o.DiscoverStreams == nil {
		return nil, badOption("Options.Streams", "is empty: name a stream or give its ARN")
	}
	all, problems := streams.ParseAll(region, o.Streams)
	for i, p := range problems {
		problems[i] = fmt.Errorf("weir: %w", p)
	}
	return all, errors.Join(problems...)
}

func (o *Options) times() lease.Times {
	return lease.Times{Heartbeat: o.Timing.HeartbeatInterval, Failover: o.Timing.FailoverAfter, Handoff: o.Timing.HandoffTimeout}
}
