package consume

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/internal/fanout"
)

// registerSettings adds the flags that have the names of the options of package weir that they set.
// The texts name package weir's defaults.
func registerSettings(cmd *cobra.Command, o *weir.Options) {
	f := cmd.Flags()
	for _, d := range []struct {
		name string
		to   *time.Duration
		text string
	}{
		{"idle-interval", &o.IdleInterval, "pause between two reads of a shard that has nothing new, 200ms to 1m (default 1s)"},
		{"retry-min", &o.RetryMin, "first pause before a batch that failed is handled again; it doubles (default 100ms)"},
		{"retry-max", &o.RetryMax, "longest pause before a batch that failed is handled again (default 30s)"},
		{"beat-interval", &o.BeatInterval, "how often this worker says that it lives and saves its progress, 100ms to 1m (default 1s)"},
		{"failover-after", &o.FailoverAfter, "how long a worker may be silent before its shards go to others; 3 beat intervals to 1h, the same for all workers (default 5s)"},
		{"handoff-timeout", &o.HandoffTimeout, "how long a batch may take to finish when its shard moves to another worker (default 30s)"},
		{"stop-timeout", &o.StopTimeout, "how long batches may take to finish when the worker is ended (default 30s)"},
		{"stall-after", &o.StallAfter, "how long reading a shard may fail before another worker tries, 30s to 24h (default 2m)"},
		{"list-interval", &o.ListInterval, "how often the shards of each stream are listed although nothing hints at a change, 1s to 1h (default 1m)"},
	} {
		f.Var(&cli.Span{To: d.to}, d.name, d.text)
	}
	f.Var(&cli.Span{To: &o.HandlerTimeout, Zero: true}, "handler-timeout",
		"how long a batch may take before its shard goes to another worker, from 1s; 0 is no limit (default 0)")
	f.Var(&cli.Number[int]{To: &o.Batch, Parse: strconv.Atoi, Low: 1, High: 10_000, Want: "1 to 10000"}, "batch", "the maximum number of records in a batch, 1 to 10000 (default 10000)")
	f.Var(&cli.Number[int]{To: &o.BatchBytes, Parse: cli.ParseSize, Low: 0, High: 1 << 30, Want: "0 to 1GiB"}, "batch-bytes",
		"the maximum size of the data in a batch, such as 4MiB; a larger record is its own batch, and 0 is no limit (default 0)")
	f.Var(&cli.Span{To: &o.BatchWait, Zero: true}, "batch-wait",
		"how long a batch that is not full waits for more records, up to 5m; 0 hands over what there is (default 0)")
	f.Var(&cli.Number[int]{To: &o.MaxMemory, Parse: cli.ParseSize, Low: 16 << 20, High: 1 << 40, Want: "16MiB to 1024GiB"}, "max-memory",
		"bytes of records that may wait to be handled, of all shards together, such as 512MiB; from 16MiB (default 128MiB)")
	f.Var(&cli.Number[int]{To: &o.MaxLeases, Parse: strconv.Atoi, Low: 0, High: math.MaxInt, Want: "a number from 0 on"}, "max-leases",
		"the maximum number of shards for this worker; 0 is no limit (default 0)")
	f.Var(&cli.Number[int]{To: &o.Parallel.Keys, Parse: strconv.Atoi, Low: 1, High: 10_000, Want: "1 to 10000"}, "parallel",
		"how many partition keys of a shard are handled at a time, each in its order, 1 to 10000 (default 1: one batch of a shard after the other)")
	f.Var(&cli.Number[int]{To: &o.SuspectAfter, Parse: parseSuspect, Low: -1, High: 1000, Want: "1 to 1000, or -1 for never"}, "suspect-after",
		"how many workers have to die one after the other at one checkpoint until records there are handled one at a time, 1 to 1000; -1 is never (default 2)")
	f.Var(&cli.Number[float64]{To: &o.Weight, Parse: cli.ParseFloat, Low: math.SmallestNonzeroFloat64, High: math.MaxFloat64, Want: "a number above 0"}, "weight",
		"this worker's share of the shards, relative to the others (default 1)")
	records.RegisterReadShare(cmd, &o.ReadShare)
	f.BoolVar(&o.NoHistory, "no-history", false, "do not write the history of this worker's shards to the store (one write per minute, which \"weir dashboard\" shows for 3 hours)")
	f.BoolVar(&o.RemoveFanOut, "remove-fan-out", false, "let the last worker that stops remove the consumer of --fan-out, so that it costs nothing while no worker runs; a consumer given by its ARN stays")
	cli.Choose(cmd, "aggregates", &o.Aggregates, "how to handle records that the KPL has packed into one: unpack, unpack-own (without those whose keys belong to another shard) or keep-packed",
		cli.Word("unpack", weir.Unpack, "each becomes a separate record"),
		cli.Word("unpack-own", weir.UnpackOwn, "those whose keys belong to another shard are dropped"),
		cli.Word("keep-packed", weir.KeepPacked, "they are passed on unchanged"))
	cli.Choose(cmd, "expired", &o.Expired, "where to continue if the service refuses a shard's checkpoint because its records have left the stream: fail does not continue and reports it",
		cli.Word("fail", weir.FailExpired, "the shard is not read until a person decides"),
		cli.Word("oldest", weir.OldestExpired, "at the oldest record in the stream"),
		cli.Word("latest", weir.LatestExpired, "with records that arrive from then on"))
	records.RegisterWire(cmd, &o.Wire)
}

func parseSuspect(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && n == 0 {
		err = errors.New("0 stands for the default")
	}
	return n, err
}

// options are those of a worker whose log goes to h.
func (o *options) options(h slog.Handler, from weir.Position) weir.Options {
	options := o.settings
	options.App, options.Streams, options.Worker, options.Start = o.app, o.streams, o.worker, from
	options.Reading, options.FanOutName, options.FanOutARNs = o.fanOut.Reading(), o.fanOut.Name, o.fanOut.ARNs
	// The other handlers copy the parts of records that they keep.
	options.ReuseBuffers = o.to.bucket == "" && options.Parallel.Keys < 2
	log := slog.New(leases{h, o.verbose})
	options.Logger = log
	var many throttles
	options.Events.ReadFailed = func(ctx context.Context, e weir.ReadFailed) {
		if many.count(e, time.Now()) {
			log.WarnContext(ctx, "reads are throttled again and again: more is read from the stream than it allows; see --read-share",
				"app", o.app, "worker", o.worker, "stream", e.Stream, "shard", e.Shard)
		}
	}
	return options
}

// leases is a log without which leases are taken and given back, unless it is verbose.
type leases struct {
	slog.Handler
	verbose bool
}

var leaseMessages = []string{"lease taken", "lease ended"}

func (h leases) Handle(ctx context.Context, r slog.Record) error {
	if !h.verbose && r.Level == slog.LevelInfo && slices.Contains(leaseMessages, r.Message) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h leases) WithAttrs(attrs []slog.Attr) slog.Handler {
	return leases{h.Handler.WithAttrs(attrs), h.verbose}
}
func (h leases) WithGroup(name string) slog.Handler {
	return leases{h.Handler.WithGroup(name), h.verbose}
}

// throttles reports that reads are throttled. A few throttles are normal, for instance when a shard
// moves, and are not reported.
type throttles struct {
	mu    sync.Mutex
	since time.Time
	n     int
}

const (
	throttledFor  = time.Minute
	manyThrottled = 10
)

// count is add for a read that failed. That a subscription waits for the one before it is no
// throttling: that ends soon.
func (c *throttles) count(e weir.ReadFailed, now time.Time) bool {
	return e.Throttled && !errors.Is(e.Err, fanout.ErrSubscribed) && c.add(now)
}

// add counts a read that was throttled. It reports whether there are many, once a minute.
func (c *throttles) add(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.since) >= throttledFor {
		c.since, c.n = now, 0
	}
	c.n++
	return c.n == manyThrottled
}
