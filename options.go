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

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

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
// [Events].PositionExpired reports each case, with every policy.
//
// Instead of refusing the checkpoint, the service may continue with the oldest record in the
// stream. weir detects and reports that, because reading begins at the last record that was
// handled. It cannot detect whether records between the two were lost, so it continues reading with
// every policy.
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

// Options configure a [Consumer]. App is required, and so is a stream or StreamsFunc. For every
// other field, the zero value selects the default.
type Options struct {
	// App is the name of the application. All workers with the same App share the shards and the
	// progress. Required, 1 to 128 characters of [a-zA-Z0-9_.-]. The Java KCL calls it
	// applicationName.
	App string
	// Stream is the stream to read, by name or ARN. Streams adds more. At least one is required.
	// Streams are identified by name, so two streams with the same name (of different accounts or
	// regions) need two applications.
	Stream  string
	Streams []string
	// StreamsFunc returns streams to read in addition to Stream and Streams, by name or ARN. Run
	// waits for its first answer, and then calls it every ListInterval. After an error the previous
	// answer stays in use. StreamsFunc has to return when ctx ends, which is after ListInterval or
	// 30 s, whichever is longer.
	//
	// A worker takes only shards of the streams in the answer. When a stream leaves the answer, the
	// worker releases its shards, and their progress stays in the store. Workers that return
	// different streams log a warning.
	StreamsFunc func(ctx context.Context) ([]string, error)
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
	// Batch is the largest number of records in one batch, 1 to 10,000. Without Parallel it also
	// limits one read. Defaults to 10,000.
	Batch int
	// BatchBytes is the largest size of the records' Data in one batch, 1 byte to 1 GiB. A larger
	// record is a batch by itself. With 0, the default, only MaxMemory limits the size.
	BatchBytes int
	// BatchWait is the time for which a batch that is not full waits for more records, 1 ms to 5
	// min. It counts from the moment at which the first record could have been delivered. With 0,
	// the default, batches do not wait. A waiting batch is delivered early when it reaches Batch,
	// BatchBytes or the shard's share of MaxMemory, when the shard ends or is handed off, and when
	// the worker stops. Lambda calls it MaximumBatchingWindowInSeconds. BatchWait cannot be
	// combined with Parallel, because a batch of Parallel has only one key.
	BatchWait time.Duration
	// Aggregates says how weir treats records that the KPL has packed into one: [Unpack] (the
	// default), [UnpackOwn] or [KeepPacked].
	Aggregates Aggregates
	// Filter selects the records that are handled. By default all records are handled.
	Filter Filter
	// Reading selects how weir reads records: [Polling] (the default) or [FanOut].
	Reading Reading
	// FanOutName is the name of the consumer that FanOut registers with each stream. All workers of
	// the application use it, and no other application may. Defaults to App, and has the same form.
	// The KCL calls it consumerName.
	FanOutName string
	// FanOutARNs are the ARNs of existing consumers, at most one for each stream. FanOut reads
	// their streams with them, and neither registers nor removes them. For other streams it uses
	// FanOutName. Each consumer has to belong to a stream that is read; weir checks that before it
	// uses the consumer. The KCL calls it consumerArn.
	FanOutARNs []string
	// RemoveFanOut makes the last worker of the application deregister the consumer FanOutName when
	// it stops, so that the consumer costs nothing while no worker runs. A stopping worker is the
	// last one if no other worker has a session in the store. The return of its Run may take up to
	// 10 s longer. A worker that starts at that moment registers the consumer again, and polls
	// until then. If the last worker is killed, the consumer stays registered. By default it is not
	// deregistered.
	RemoveFanOut bool
	// Wire chooses how records are read from the service; see [Wire]. Defaults to AutoWire.
	Wire Wire
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
	// IdleInterval is the pause between two reads of a shard without new records, 200 ms to 1 min.
	// Defaults to 1 s. While there is more to read, weir reads as fast as the service and ReadShare
	// allow. docs/timing.md lists the cases in which the pause is shorter or longer. The KCL calls
	// it idleTimeBetweenReadsInMillis.
	IdleInterval time.Duration
	// ReadShare is this application's share of the five reads and 2 MiB a second that all readers
	// of a shard have together, 0.01 to 1. Defaults to 1. If two applications have 0.5 each,
	// neither throttles the other when it has to catch up. With less than 1, an answer has at most
	// the bytes that the share allows in one second, or in the time until the next read if that is
	// longer. Each worker applies the share to each of its shards, so a shard that changes hands
	// may be read one more time. ReadShare does not apply to fan-out, except while a shard is
	// polled instead.
	ReadShare float64
	// RetryMin and RetryMax limit the pause before weir calls a handler again after a failure. The
	// pause doubles with each failure, with jitter. RetryMin is 1 ms to 1 h and defaults to 100 ms.
	// RetryMax is RetryMin to 24 h and defaults to 30 s, or to RetryMin if that is longer. Without
	// GiveUp, batches are retried until they succeed.
	RetryMin, RetryMax time.Duration

	// GiveUp says when weir gives up a record whose handler fails, and where the dead letter goes.
	// By default weir retries each record for ever. GiveUp cannot be combined with
	// [ShardHandlers].Pull and [Consumer.Records], where records do not fail.
	GiveUp GiveUp
	// Parallel makes weir handle the partition keys of a shard in parallel. By default the batches
	// of a shard are handled one after the other.
	Parallel Parallel

	// SuspectAfter finds records that kill the process of their worker. It is a number of owners of
	// a shard, 1 to 1,000. If that many owners die one after the other at the same position, the
	// next owner handles the records there one at a time, each with a checkpoint, for 1,000 records
	// or 10 min. If it dies too, the record that it was handling is the cause. If [GiveUp].To is
	// set, weir gives that record up with the reason deadletter.Killed. Otherwise weir handles it
	// again after a pause, which doubles from owner to owner, from 1 min to 15 min.
	//
	// A worker counts as dead if its session was ended because its heartbeats stopped, and not if
	// it hands its shards off. SuspectAfter defaults to 2. With a negative value weir never
	// suspects a record. SuspectAfter needs a store with lease.NoteDeaths.
	SuspectAfter int

	// BeatInterval is the time between two heartbeats, with which a worker reports that it lives
	// and saves its progress. 100 ms to 1 min. Defaults to 1 s.
	BeatInterval time.Duration
	// FailoverAfter is the time for which a worker may be silent before others take its shards.
	// While the store is silent, a worker trusts its leases for the same time. 3 beat intervals to
	// 1 h. Defaults to 5 s, or to 3 beat intervals if that is longer. The KCL calls it
	// failoverTimeMillis.
	FailoverAfter time.Duration
	// HandoffTimeout is the time that a handler has to finish its batch when a lease moves to
	// another worker. After that, the lease is taken away. A beat interval to 24 h. Defaults to 30
	// s, or to FailoverAfter if that is longer.
	HandoffTimeout time.Duration
	// StopTimeout is the time that handlers have to finish their batches when Run stops. After
	// that, their contexts end with the cause [ErrStopping]. 1 ms to 24 h. Defaults to 30 s.
	StopTimeout time.Duration
	// StallAfter is the time for which reading a shard may fail, or return no answer, before this
	// worker releases the lease so that another worker can try. 30 s to 24 h, with FanOut at least
	// 2 min. Defaults to 2 min. Each time that the shard stalls again, the time doubles, up to 32
	// times StallAfter. An empty answer counts as progress. Failures that every worker would get do
	// not count: throttling, a refused position, a missing stream. A failing handler does not count
	// either, because weir calls it again.
	StallAfter time.Duration
	// HandlerTimeout is the time that one call of the handler may take, 1 s to 24 h. weir checks it
	// with each heartbeat. After that, the context of the call ends with [ErrStalled]. When the
	// handler has returned, or HandoffTimeout later, the lease goes to another worker, which
	// handles the batch again. 0, the default, is no limit. With a limit, a handler that always
	// needs more time would never finish. weir reports a handler that takes longer than StallAfter.
	HandlerTimeout time.Duration
	// ListInterval is the time between two listings of a stream's shards by the leader, while there
	// is no sign of a change. 1 s to 1 h. Defaults to 1 min.
	ListInterval time.Duration

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

	// Events are called when something happens; see [Events].
	Events Events
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
func (o Options) checked(client *kinesis.Client, store lease.Store) (Options, []streams.Stream, error) {
	var problems []error
	bad := func(option, format string, args ...any) {
		problems = append(problems, badOption(option, format, args...))
	}

	if client == nil {
		problems = append(problems, errNoClient)
	}
	if store == nil {
		problems = append(problems, errNoStore)
	}
	if !appForm.MatchString(o.App) {
		bad("Options.App", "%.140q must be 1 to 128 of a-z, A-Z, 0-9, _ . -", o.App)
	}
	all, err := o.streams(client)
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

	switch o.Start.Kind() {
	case shard.None:
		o.Start = Oldest
	case shard.First, shard.Tip, shard.Time:
	default:
		bad("Options.Start", "%q must be Oldest, Latest or At(a time): other positions belong to one shard", o.Start)
	}
	within := func(name string, d *time.Duration, fallback, low, high time.Duration) {
		if *d == 0 {
			*d = fallback
		}
		if *d < low || *d > high {
			bad("Options."+name, "%v must be between %v and %v", *d, low, high)
		}
	}
	within("IdleInterval", &o.IdleInterval, time.Second, 200*time.Millisecond, time.Minute)
	within("RetryMin", &o.RetryMin, 100*time.Millisecond, time.Millisecond, time.Hour)
	within("RetryMax", &o.RetryMax, max(30*time.Second, o.RetryMin), o.RetryMin, 24*time.Hour)
	within("BeatInterval", &o.BeatInterval, time.Second, 100*time.Millisecond, time.Minute)
	within("FailoverAfter", &o.FailoverAfter, max(5*time.Second, 3*o.BeatInterval), 3*o.BeatInterval, time.Hour)
	within("HandoffTimeout", &o.HandoffTimeout, max(30*time.Second, o.FailoverAfter), o.BeatInterval, 24*time.Hour)
	within("StopTimeout", &o.StopTimeout, 30*time.Second, time.Millisecond, 24*time.Hour)
	shortest := 30 * time.Second // a call may take 20 s
	if o.Reading == FanOut {
		// three subscriptions may be silent for 32 s each before the shard is polled
		shortest = 2 * time.Minute
	}
	within("StallAfter", &o.StallAfter, 2*time.Minute, shortest, 24*time.Hour)
	if o.HandlerTimeout != 0 {
		within("HandlerTimeout", &o.HandlerTimeout, 0, time.Second, 24*time.Hour)
	}
	within("ListInterval", &o.ListInterval, time.Minute, time.Second, time.Hour)

	if o.Batch == 0 {
		o.Batch = 10000
	}
	if o.Batch < 1 || o.Batch > 10000 {
		bad("Options.Batch", "%d must be between 1 and 10,000", o.Batch)
	}
	if o.BatchBytes < 0 || int64(o.BatchBytes) > 1<<30 {
		bad("Options.BatchBytes", "%d must be between 1 and 1 GiB, or 0 for no cap", o.BatchBytes)
	}
	if o.BatchWait != 0 {
		within("BatchWait", &o.BatchWait, 0, time.Millisecond, 5*time.Minute)
		if o.Parallel.on() {
			bad("Options.BatchWait", "cannot be combined with Parallel, whose batches have one key each: leave one of them out")
		}
	}
	if err := checkMemory("Options", &o.MaxMemory); err != nil {
		problems = append(problems, err)
	}
	if o.Aggregates < Unpack || o.Aggregates > KeepPacked {
		bad("Options.Aggregates", "%d must be Unpack, UnpackOwn or KeepPacked", o.Aggregates)
	}
	if o.Expired < FailExpired || o.Expired > LatestExpired {
		bad("Options.Expired", "%d must be FailExpired, OldestExpired or LatestExpired", o.Expired)
	}
	if o.Reading < Polling || o.Reading > FanOut {
		bad("Options.Reading", "%d must be Polling or FanOut", o.Reading)
	}
	switch {
	case o.FanOutName == "":
		o.FanOutName = o.App
	case !appForm.MatchString(o.FanOutName):
		bad("Options.FanOutName", "%.140q must be 1 to 128 of a-z, A-Z, 0-9, _ . -", o.FanOutName)
	case o.Reading != FanOut:
		bad("Options.FanOutName", "%q is set although Options.Reading is not FanOut", o.FanOutName)
	}
	o.checkFanOutARNs(client, all, bad)
	if o.RemoveFanOut && o.Reading != FanOut {
		bad("Options.RemoveFanOut", "is set although Options.Reading is not FanOut")
	}
	o.GiveUp.check(bad)
	o.Filter.check(bad)
	o.Parallel.check(o.ReuseBuffers, bad)
	if o.SuspectAfter == 0 {
		o.SuspectAfter = 2
	}
	if o.SuspectAfter > 1000 {
		bad("Options.SuspectAfter", "%d must be 1000 at most, or negative for never", o.SuspectAfter)
	}
	if o.Wire < AutoWire || o.Wire > OverNetHTTP {
		bad("Options.Wire", "%d must be AutoWire, UnderSDK, SDKWire or OverNetHTTP", o.Wire)
	}
	if err := checkReadShare("Options", &o.ReadShare); err != nil {
		problems = append(problems, err)
	}
	if o.Weight == 0 {
		o.Weight = 1
	}
	if !(o.Weight > 0) || math.IsInf(o.Weight, 0) {
		bad("Options.Weight", "%v must be a positive number", o.Weight)
	}
	if o.MaxLeases < 0 {
		bad("Options.MaxLeases", "%d must not be negative; 0 is no cap", o.MaxLeases)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, all, errors.Join(problems...)
}

// checkReadShare sets the default of ReadShare, and returns an error for an invalid value.
func checkReadShare(of string, share *float64) error {
	const least = 0.01 // a read every 20 s
	if *share == 0 {
		*share = 1
	}
	if !(*share >= least && *share <= 1) { // also if it is not a number
		return badOption(of+".ReadShare", "%v must be between %v and 1", *share, least)
	}
	return nil
}

// streams parses the streams of the options, without those of StreamsFunc.
func (o Options) streams(client *kinesis.Client) ([]streams.Stream, error) {
	given := o.Streams
	if o.Stream != "" {
		given = append([]string{o.Stream}, given...)
	}
	if len(given) == 0 && o.StreamsFunc == nil {
		return nil, badOption("Options.Stream", "is empty: name a stream or give its ARN")
	}
	all, problems := streams.ParseAll(client, given)
	for i, p := range problems {
		problems[i] = fmt.Errorf("weir: %w", p)
	}
	return all, errors.Join(problems...)
}

func (o *Options) times() lease.Times {
	return lease.Times{Beat: o.BeatInterval, Failover: o.FailoverAfter, Handoff: o.HandoffTimeout}
}

// Wire selects how weir makes its read calls. With each value, weir does the pacing and the
// retries, errors have the SDK's types, and an endpoint without CBOR gets JSON.
type Wire int

const (
	// AutoWire bypasses the SDK's stack if the client's options give it nothing to do: no
	// middleware, interceptors, tracer or meter, no retryer, signer, endpoint resolver or protocol
	// of your own, and an HTTP client that is the SDK's or an *http.Client. Such calls use the
	// SDK's credentials and endpoint, HTTP/1.1, CBOR and identity encoding. They cost a few percent
	// more than receiving the bytes. With other clients, AutoWire does what UnderSDK does. The
	// default.
	AutoWire Wire = iota
	// UnderSDK calls through the SDK, with weir's decoder. Your middleware and tracing see every
	// call, but the output that they see has no Records.
	UnderSDK
	// SDKWire leaves everything to the SDK. It costs about ten times as much, and exists for
	// comparison. Answers in progress take memory in addition to Options.MaxMemory, because the SDK
	// does not know that limit. If a connection dies without notice, SDKWire waits 20 s for the
	// answer; the other values ask again after at most 4 s.
	SDKWire
	// OverNetHTTP does what AutoWire does, but over net/http instead of weir's own HTTP/1.1 client.
	// net/http costs more. OverNetHTTP exists for comparison. AutoWire also changes to net/http for
	// an endpoint if weir's client does not understand one of its answers. weir logs that once.
	OverNetHTTP
)

// options returns the options of the wire.
func (w Wire) options() wire.Options { return wire.Options{Path: w.path(), NetHTTP: w == OverNetHTTP} }

func (w Wire) path() wire.Path {
	switch w {
	case UnderSDK:
		return wire.UnderSDK
	case SDKWire:
		return wire.PlainSDK
	default:
		return wire.AutoPath
	}
}
