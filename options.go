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

// Where a new application starts, for Options.Start; weir.At(t) is the third.
var (
	// Oldest starts with the oldest record the stream still keeps.
	Oldest = shard.Oldest
	// Latest starts with what arrives from now on: "now" is taken once, from the service's clock,
	// when the application first sees the stream, so a worker that starts late or restarts before
	// its first checkpoint loses nothing.
	Latest = shard.Latest
)

// At starts with the first record that arrived at t or later.
func At(t time.Time) Position { return shard.At(t) }

// ExpiredPolicy selects what happens when the service refuses a checkpoint because its records have
// left the stream, or because the stream was deleted and created again under the same name.
// [Events].PositionExpired reports each case, with every policy.
//
// Instead of refusing, the service may continue with the oldest record in the stream. weir detects
// and reports that, because reading begins at the last record that was handled. It cannot detect
// whether records between the two were lost, so reading continues with every policy.
type ExpiredPolicy int

const (
	// FailExpired stops the shard at the checkpoint until an operator decides, and reports that.
	// Neither the oldest nor the newest record is where the application was. The default.
	FailExpired ExpiredPolicy = iota
	// OldestExpired continues with the oldest record in the stream.
	OldestExpired
	// LatestExpired continues with records that arrive from then on, by the service's clock.
	LatestExpired
)

// Options say what to read and how. App and a stream, or StreamsFunc, are required; every other
// field's zero value is its default.
type Options struct {
	// App names the application: the workers that share one progress. Required, 1 to 128 of
	// [a-zA-Z0-9_.-]. The Java KCL calls it applicationName.
	App string
	// Stream is the stream to read, by name or ARN. Streams adds more. At least one is required.
	// Streams are identified by name, so two streams with the same name (of different accounts or
	// regions) need two applications.
	Stream  string
	Streams []string
	// StreamsFunc returns streams to read in addition to Stream and Streams, by name or ARN. Run
	// calls it first and waits for its answer, then calls it every ListInterval; after an error the
	// previous answer stays in use. It has to return when ctx ends: after ListInterval, or after 30
	// s if that is longer. A worker takes only shards of streams that it returns, and releases the
	// shards of streams that it no longer returns; they keep their progress. Workers that return
	// different streams log a warning.
	StreamsFunc func(ctx context.Context) ([]string, error)
	// Worker names this worker for people. Defaults to host name and process ID. At most 200 bytes.
	Worker string

	// Start is the first position in a stream that is new to the application: [Oldest] (the
	// default), [Latest] or [At]. Shards that appear later through splits and merges are always
	// read from their beginning.
	Start Position
	// Expired says what becomes of a checkpoint whose records have left the stream: [FailExpired]
	// (the default), [OldestExpired] or [LatestExpired].
	Expired ExpiredPolicy
	// Batch caps the records of one batch, and of one read, 1 to 10,000; with Parallel, of a batch
	// alone. Defaults to 10,000.
	Batch int
	// BatchBytes caps the bytes of the records' Data in one batch; a larger record is a batch by
	// itself. 1 to 1 GiB. 0, the default, is no cap but that of MaxMemory.
	BatchBytes int
	// BatchWait is how long a batch that is not full waits for more records, counted from when its
	// first record could have been delivered; 1 ms to 5 min. 0, the default, does not wait. A
	// waiting batch is delivered early when it reaches Batch or BatchBytes or the shard's share of
	// MaxMemory, when the shard ends, when the lease has to be handed off, and when the worker
	// stops. Lambda's name for it is MaximumBatchingWindowInSeconds. It cannot be combined with
	// Parallel, because a batch of Parallel has only one key.
	BatchWait time.Duration
	// Aggregates says what becomes of records that the KPL has packed into one: [Unpack] (the
	// default), [UnpackOwn] or [KeepPacked].
	Aggregates Aggregates
	// Filter says which records are handled. By default all are.
	Filter Filter
	// Reading is how records come from the service: [Polling] (the default) or [FanOut].
	Reading Reading
	// FanOutName names the consumer that FanOut registers with each stream and all workers of the
	// application use. Two applications must not share one. Defaults to App, in the same form. The
	// KCL calls it consumerName.
	FanOutName string
	// FanOutARNs are ARNs of existing consumers, at most one for each stream. FanOut reads those
	// streams with them, and neither registers nor removes them. Other streams have the consumer
	// FanOutName. Each consumer has to belong to a stream that is read, which is checked before it
	// is used. The KCL calls it consumerArn.
	FanOutARNs []string
	// RemoveFanOut deregisters the consumer FanOutName when the last worker of the application
	// stops, so that it costs nothing while no worker runs. The stopping worker deregisters it if
	// no other worker has a session in the store. This may delay the return of its Run by up to 10
	// s. A worker that starts at that moment registers the consumer again, and polls until then. If
	// the last worker is killed, the consumer stays registered. By default it is not deregistered.
	RemoveFanOut bool
	// Wire chooses how records are read from the service; see [Wire]. Defaults to AutoWire.
	Wire Wire
	// ReuseBuffers makes the memory of a batch be used again after the handler has returned: Data,
	// PartitionKey and SequenceNumber are then valid until that and no longer. It saves a good part
	// of the cost of reading, for handlers that copy what they keep. With WEIR_POISON=1 in the
	// environment of a test that memory is filled with nonsense first, so that a handler which
	// keeps some of it shows.
	ReuseBuffers bool
	// MaxMemory bounds the bytes of records that were read and not yet handled, of all shards
	// together, 16 MiB to 1 TiB. Defaults to 128 MiB. Each shard is sure of a share, so that a slow
	// handler stops no shard but its own. docs/timing.md says how it is shared out, and when a
	// single large record exceeds it.
	MaxMemory int
	// IdleInterval is the pause between two reads of a shard that has nothing new, 200 ms to 1 min.
	// Defaults to 1 s. While there is more to read, weir reads on as fast as the service and
	// ReadShare allow; where it is shorter or longer than this, docs/timing.md says. The KCL calls
	// it idleTimeBetweenReadsInMillis.
	IdleInterval time.Duration
	// ReadShare is this application's share of the five reads and 2 MiB a second that all pollers
	// of a shard have together, 0.01 to 1. Defaults to 1. With 0.5 for each of two applications,
	// neither throttles the other when it has to catch up. With less than 1, answers are small too:
	// one second's worth each. Each worker applies it to each shard that it reads, so a shard that
	// changes hands may be read once more than that. It does not apply to fan-out, except while a
	// shard falls back to polling.
	ReadShare float64
	// RetryMin and RetryMax bound the pause, doubling with jitter, before a batch whose handler
	// failed is handled again. RetryMin is 1 ms to 1 h, RetryMax not less and up to 24 h. They
	// default to 100 ms and 30 s, or RetryMin if that is more. Batches are retried until they
	// succeed.
	RetryMin, RetryMax time.Duration

	// GiveUp selects when a record whose handler fails is given up, and where its dead letter is
	// put. By default no record is given up, and it is retried for ever. It cannot be combined with
	// [ShardHandlers].Pull and [Consumer.Records], where records do not fail.
	GiveUp GiveUp
	// Parallel has the partition keys of a shard be handled side by side. By default one batch of a
	// shard is handled after the other.
	Parallel Parallel

	// SuspectAfter is how many owners of a shard have to die one after the other at one position, 1
	// to 1,000, until the next one handles the records there one at a time, each with a checkpoint,
	// for 1,000 records or 10 min. The record at which that one dies is one that kills: it is given
	// up with the reason deadletter.Killed where [GiveUp].To is set, and else handled again after a
	// pause that doubles from owner to owner, from 1 min to 15 min. A worker counts as dead when
	// its session was ended because its beats stopped, not when it hands its shards off. Defaults
	// to 2; negative never suspects any. It needs a store with lease.NoteDeaths.
	SuspectAfter int

	// BeatInterval is the time between two beats: how often a worker says that it lives and saves
	// its progress. 100 ms to 1 min. Defaults to 1 s.
	BeatInterval time.Duration
	// FailoverAfter is how long a worker may be silent before its shards go to others, and how long
	// it trusts its leases while the store is silent. 3 beat intervals to 1 h. Defaults to 5 s, or
	// 3 beat intervals if that is more. The KCL calls it failoverTimeMillis.
	FailoverAfter time.Duration
	// HandoffTimeout is how long the handler may take to finish its batch when a lease moves to
	// another worker, before the lease is taken away; a beat interval to 24 h. Defaults to 30 s, or
	// FailoverAfter if that is more.
	HandoffTimeout time.Duration
	// StopTimeout is how long handlers may take to finish their batches when Run stops; then their
	// contexts end with cause [ErrStopping]. 1 ms to 24 h. Defaults to 30 s.
	StopTimeout time.Duration
	// StallAfter is how long reading a shard may return only failures, or nothing at all, before
	// this worker releases the lease so that another can try; 30 s to 24 h, with FanOut at least 2
	// min. Defaults to 2 min. It doubles, up to 32 times, while the shard stalls again. An empty
	// answer is progress. Failures that every worker would get do not count: throttling, a refused
	// position, a missing stream. A failing handler does not count either, because it is called
	// again.
	StallAfter time.Duration
	// HandlerTimeout is how long one call of the handler may take, 1 s to 24 h; it is looked at
	// with each beat. Then its context ends with [ErrStalled], and when it has returned, or
	// HandoffTimeout later, the lease goes to another worker, which handles the batch again. 0, the
	// default, is no bound: a handler that is only slow would never get done. One that takes longer
	// than StallAfter is reported.
	HandlerTimeout time.Duration
	// ListInterval is how often the leader lists the shards of each stream although nothing hints
	// at a change; 1 s to 1 h. Defaults to 1 min.
	ListInterval time.Duration

	// Weight is this worker's share of the shards relative to the others. Defaults to 1.
	Weight float64
	// MaxLeases caps the shards that this worker reads at a time. Shards for which no worker has
	// room are not read. 0 is no cap. The KCL calls it maxLeasesForWorker.
	MaxLeases int

	// NoHistory has this worker not report how its shards stood over time, which the dashboard's
	// page shows: a write a minute to a store with lease.KeepHistory, which keeps it for 3 hours.
	NoHistory bool

	// Events are called when something happens; see [Events].
	Events Events
	// Logger gets what a person should know. Defaults to slog.Default().
	Logger *slog.Logger
}

// checkMemory sets the default of MaxMemory, and says what is wrong with another.
func checkMemory(options string, bytes *int) error {
	if *bytes == 0 {
		*bytes = 128 << 20
	}
	if *bytes < 16<<20 || int64(*bytes) > 1<<40 {
		return fmt.Errorf("weir: %s.MaxMemory %d must be between 16 MiB and 1 TiB", options, *bytes)
	}
	return nil
}

var appForm = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`)

// checked returns the options with defaults filled in and the streams parsed, or every problem at
// once.
func (o Options) checked(client *kinesis.Client, store lease.Store) (Options, []streams.Stream, error) {
	var problems []error
	bad := func(format string, args ...any) { problems = append(problems, fmt.Errorf("weir: "+format, args...)) }

	if client == nil {
		bad("the Kinesis client is nil; make one with kinesis.NewFromConfig")
	}
	if store == nil {
		bad("the store is nil; memstore.New() keeps everything in memory and loses it when the process ends")
	}
	if !appForm.MatchString(o.App) {
		bad("Options.App %.140q must be 1 to 128 of a-z, A-Z, 0-9, _ . -", o.App)
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
		bad("Options.Worker has %d bytes, at most 200 are allowed", len(o.Worker))
	}

	switch o.Start.Kind() {
	case shard.None:
		o.Start = Oldest
	case shard.First, shard.Tip, shard.Time:
	default:
		bad("Options.Start %q must be Oldest, Latest or At(a time): other positions belong to one shard", o.Start)
	}
	within := func(name string, d *time.Duration, fallback, low, high time.Duration) {
		if *d == 0 {
			*d = fallback
		}
		if *d < low || *d > high {
			bad("Options.%s %v must be between %v and %v", name, *d, low, high)
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
		bad("Options.Batch %d must be between 1 and 10,000", o.Batch)
	}
	if o.BatchBytes < 0 || int64(o.BatchBytes) > 1<<30 {
		bad("Options.BatchBytes %d must be between 1 and 1 GiB, or 0 for no cap", o.BatchBytes)
	}
	if o.BatchWait != 0 {
		within("BatchWait", &o.BatchWait, 0, time.Millisecond, 5*time.Minute)
		if o.Parallel.on() {
			bad("Options.BatchWait cannot be combined with Parallel, whose batches have one key each: leave one of them out")
		}
	}
	if err := checkMemory("Options", &o.MaxMemory); err != nil {
		problems = append(problems, err)
	}
	if o.Aggregates < Unpack || o.Aggregates > KeepPacked {
		bad("Options.Aggregates %d must be Unpack, UnpackOwn or KeepPacked", o.Aggregates)
	}
	if o.Expired < FailExpired || o.Expired > LatestExpired {
		bad("Options.Expired %d must be FailExpired, OldestExpired or LatestExpired", o.Expired)
	}
	if o.Reading < Polling || o.Reading > FanOut {
		bad("Options.Reading %d must be Polling or FanOut", o.Reading)
	}
	switch {
	case o.FanOutName == "":
		o.FanOutName = o.App
	case !appForm.MatchString(o.FanOutName):
		bad("Options.FanOutName %.140q must be 1 to 128 of a-z, A-Z, 0-9, _ . -", o.FanOutName)
	case o.Reading != FanOut:
		bad("Options.FanOutName %q is set although Options.Reading is not FanOut", o.FanOutName)
	}
	o.checkFanOutARNs(client, all, bad)
	if o.RemoveFanOut && o.Reading != FanOut {
		bad("Options.RemoveFanOut is set although Options.Reading is not FanOut")
	}
	o.GiveUp.check(bad)
	o.Filter.check(bad)
	o.Parallel.check(o.ReuseBuffers, bad)
	if o.SuspectAfter == 0 {
		o.SuspectAfter = 2
	}
	if o.SuspectAfter > 1000 {
		bad("Options.SuspectAfter %d must be 1000 at most, or negative for never", o.SuspectAfter)
	}
	if o.Wire < AutoWire || o.Wire > OverNetHTTP {
		bad("Options.Wire %d must be AutoWire, UnderSDK, SDKWire or OverNetHTTP", o.Wire)
	}
	if err := checkReadShare("Options", &o.ReadShare); err != nil {
		problems = append(problems, err)
	}
	if o.Weight == 0 {
		o.Weight = 1
	}
	if !(o.Weight > 0) || math.IsInf(o.Weight, 0) {
		bad("Options.Weight %v must be a positive number", o.Weight)
	}
	if o.MaxLeases < 0 {
		bad("Options.MaxLeases %d must not be negative; 0 is no cap", o.MaxLeases)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, all, errors.Join(problems...)
}

// checkReadShare fills the default in, or returns what is wrong with the ReadShare of options.
func checkReadShare(of string, share *float64) error {
	const least = 0.01 // a read every 20 s
	if *share == 0 {
		*share = 1
	}
	if !(*share >= least && *share <= 1) { // also if it is not a number
		return fmt.Errorf("weir: %s.ReadShare %v must be between %v and 1", of, *share, least)
	}
	return nil
}

// streams parses those of the options, Options.StreamsFunc aside.
func (o Options) streams(client *kinesis.Client) ([]streams.Stream, error) {
	given := o.Streams
	if o.Stream != "" {
		given = append([]string{o.Stream}, given...)
	}
	if len(given) == 0 && o.StreamsFunc == nil {
		return nil, errors.New("weir: Options.Stream is empty: name a stream or give its ARN")
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

// Wire selects how records are read from the service. With each, weir does the pacing and the
// retries, errors have the SDK's types, and an endpoint without CBOR gets JSON.
type Wire int

const (
	// AutoWire makes weir's own calls where the client's options leave nothing for the SDK's stack
	// to do: no middleware, interceptors, tracer or meter, no retryer, signer, endpoint resolver or
	// protocol of your own, and an HTTP client that is the SDK's or an *http.Client. Such calls
	// take the SDK's credentials and endpoint, HTTP/1.1, CBOR and identity encoding, and no more
	// than a few percent above the cost of receiving the bytes. Other clients are used as by
	// UnderSDK. The default.
	AutoWire Wire = iota
	// UnderSDK calls through the SDK with a decoder of our own, so that your middleware and tracing
	// see every call; the output they see has no Records.
	UnderSDK
	// SDKWire leaves everything to the SDK. It costs about ten times as much and is there for
	// comparison and doubt. The SDK does not ask for memory: Options.MaxMemory is exceeded by what
	// answers need that are under way. And it waits 20 s for an answer over a connection that has
	// died without a word, where the others ask a second time after at most 4 s.
	SDKWire
	// OverNetHTTP is AutoWire with the requests made by net/http, instead of an HTTP/1.1 client of
	// our own that costs less. It is for comparison and doubt: where that client does not
	// understand an answer, net/http makes the further calls to the endpoint anyway, which is
	// logged once.
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
