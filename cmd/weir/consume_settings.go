package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir"
)

// registerSettings adds the flags that are named as the options of package weir that they set. An
// option without a value of its own has package weir's default, which the texts say.
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
		f.Var(&span{to: d.to}, d.name, d.text)
	}
	f.Var(&span{to: &o.HandlerTimeout, zero: true}, "handler-timeout",
		"how long a batch may take before its shard goes to another worker, from 1s; 0 is no limit (default 0)")
	f.Var(&number[int]{to: &o.Batch, parse: strconv.Atoi, low: 1, high: 10_000, want: "1 to 10000"}, "batch", "at most so many records in a batch, 1 to 10000 (default 10000)")
	f.Var(&number[int]{to: &o.BatchBytes, parse: parseSize, low: 0, high: 1 << 30, want: "0 to 1GiB"}, "batch-bytes",
		"at most so many bytes of data in a batch, such as 4MiB; a larger record is a batch by itself, and 0 is no limit (default 0)")
	f.Var(&span{to: &o.BatchWait, zero: true}, "batch-wait",
		"how long a batch that is not full waits for more records, up to 5m; 0 hands over what there is (default 0)")
	f.Var(&number[int]{to: &o.MaxMemory, parse: parseSize, low: 16 << 20, high: 1 << 40, want: "16MiB to 1024GiB"}, "max-memory",
		"bytes of records that may wait to be handled, of all shards together, such as 512MiB; from 16MiB (default 128MiB)")
	f.Var(&number[int]{to: &o.MaxLeases, parse: strconv.Atoi, low: 0, high: math.MaxInt, want: "a number from 0 on"}, "max-leases",
		"at most so many shards for this worker; 0 is no limit (default 0)")
	f.Var(&number[int]{to: &o.Parallel.Keys, parse: strconv.Atoi, low: 1, high: 10_000, want: "1 to 10000"}, "parallel",
		"how many partition keys of a shard are handled at a time, each in its order, 1 to 10000 (default 1: one batch of a shard after the other)")
	f.Var(&number[int]{to: &o.SuspectAfter, parse: parseSuspect, low: -1, high: 1000, want: "1 to 1000, or -1 for never"}, "suspect-after",
		"how many workers have to die one after the other at one checkpoint until records there are handled one at a time, 1 to 1000; -1 is never (default 2)")
	f.Var(&number[float64]{to: &o.Weight, parse: parseFloat, low: math.SmallestNonzeroFloat64, high: math.MaxFloat64, want: "a number above 0"}, "weight",
		"this worker's share of the shards, relative to the others (default 1)")
	registerReadShare(cmd, &o.ReadShare)
	f.BoolVar(&o.NoHistory, "no-history", false, "do not keep in the store how this worker's shards stand, a write a minute, which \"weir dashboard\" shows for 3 hours")
	f.BoolVar(&o.RemoveFanOut, "remove-fan-out", false, "the last worker that stops removes the consumer of --fan-out, so that it costs nothing while nobody runs; one given by its ARN stays")
	choose(cmd, "aggregates", &o.Aggregates, "what becomes of records that the KPL has packed into one: unpack, unpack-own (without those whose keys belong to another shard) or keep-packed",
		choice[weir.Aggregates]{"unpack", weir.Unpack, "each becomes a record of its own"},
		choice[weir.Aggregates]{"unpack-own", weir.UnpackOwn, "those whose keys belong to another shard are dropped"},
		choice[weir.Aggregates]{"keep-packed", weir.KeepPacked, "handed on as they are"})
	choose(cmd, "expired", &o.Expired, "where a shard goes on whose checkpoint the service refuses, because its records have left the stream: fail stays there and says so",
		choice[weir.ExpiredPolicy]{"fail", weir.FailExpired, "the shard stays where it is, until somebody decides"},
		choice[weir.ExpiredPolicy]{"oldest", weir.OldestExpired, "with the oldest record there is"},
		choice[weir.ExpiredPolicy]{"latest", weir.LatestExpired, "with what arrives from then on"})
	registerWire(cmd, &o.Wire)
}

func parseSuspect(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && n == 0 {
		err = errors.New("0 stands for the default")
	}
	return n, err
}

func registerWire(cmd *cobra.Command, to *weir.Wire) {
	choose(cmd, "wire", to, "how records are read from the service: auto, net-http, under-sdk or sdk",
		choice[weir.Wire]{"auto", weir.AutoWire, "weir's own calls where nothing is in their way"},
		choice[weir.Wire]{"net-http", weir.OverNetHTTP, "the same calls, over Go's HTTP client"},
		choice[weir.Wire]{"under-sdk", weir.UnderSDK, "calls of the AWS SDK, answers read by weir"},
		choice[weir.Wire]{"sdk", weir.SDKWire, "everything by the AWS SDK, at about ten times the cost"})
}

func registerReadShare(cmd *cobra.Command, share *float64) {
	cmd.Flags().Var(&number[float64]{to: share, parse: parseFloat, low: .01, high: 1, want: "0.01 to 1"}, "read-share",
		"part of each shard's 5 reads and 2 MiB a second to take at most, 0.01 to 1; the rest is for others that poll the stream (default 1)")
}

// options are those of a worker whose log goes to h.
func (o *consumeOptions) options(h slog.Handler, from weir.Position) weir.Options {
	options := o.settings
	options.App, options.Streams, options.Worker, options.Start = o.app, o.streams, o.worker, from
	options.Reading, options.FanOutName, options.FanOutARNs = o.fanOut.reading(), o.fanOut.name, o.fanOut.arns
	// What the other handlers keep of records are copies.
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

// span is a flag that sets a duration.
type span struct {
	to    *time.Duration
	zero  bool // 0 means something
	given bool
}

func (s *span) Type() string { return "duration" }

func (s *span) String() string {
	if s.to == nil || *s.to == 0 && !s.given {
		return ""
	}
	return s.to.String()
}

func (s *span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	if d == 0 && !s.zero { // which package weir takes for its default; it refuses the rest
		return fmt.Errorf("%.40s: want more than 0", text)
	}
	*s.to, s.given = d, true
	return nil
}

// number is a flag that sets a number from low to high.
type number[T int | float64] struct {
	to        *T
	parse     func(string) (T, error)
	low, high T
	want      string
	given     bool
}

func (n *number[T]) Type() string { return "number" }

func (n *number[T]) String() string {
	if n.to == nil || *n.to == 0 && !n.given {
		return ""
	}
	return fmt.Sprint(*n.to)
}

func (n *number[T]) Set(text string) error {
	v, err := n.parse(text)
	if err != nil {
		return fmt.Errorf("%.140q: want %s", text, n.want)
	}
	if !(v >= n.low && v <= n.high) { // also if it is not a number
		return fmt.Errorf("%.140s: want %s", text, n.want)
	}
	*n.to, n.given = v, true
	return nil
}

func parseFloat(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

// parseSize reads a number of bytes, such as 512MiB.
func parseSize(s string) (int, error) {
	unit := 1
	for suffix, of := range map[string]int{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if rest, found := strings.CutSuffix(s, suffix); found {
			s, unit = rest, of
			break
		}
	}
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err == nil && (n > math.MaxInt/unit || n < 0) {
		err = strconv.ErrRange
	}
	return n * unit, err
}

// choice is a word of a flag, and what it means.
type choice[T comparable] struct {
	word  string
	value T
	text  string
}

// choose adds a flag that takes one of several words. The first is the default.
func choose[T comparable](cmd *cobra.Command, name string, to *T, text string, of ...choice[T]) {
	f := &chosen[T]{to, of}
	cmd.Flags().Var(f, name, text)
	var complete []string
	for _, c := range of {
		complete = append(complete, c.word+"\t"+c.text)
	}
	mustComplete(cmd, name, complete...)
}

type chosen[T comparable] struct {
	to *T
	of []choice[T]
}

func (c *chosen[T]) words(between string) string {
	var words []string
	for _, o := range c.of {
		words = append(words, o.word)
	}
	return strings.Join(words, between)
}

// Type is the words where they are short, for help.
func (c *chosen[T]) Type() string {
	if words := c.words("|"); len(words) <= len("fail|oldest|latest") {
		return words
	}
	return "MODE"
}

// list is the words in a sentence.
func (c *chosen[T]) list() string {
	words := strings.Split(c.words(" "), " ")
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (c *chosen[T]) String() string {
	for _, o := range c.of {
		if o.value == *c.to {
			return o.word
		}
	}
	return ""
}

func (c *chosen[T]) Set(s string) error {
	for _, o := range c.of {
		if o.word == s {
			*c.to = o.value
			return nil
		}
	}
	return fmt.Errorf("%.140q: use %s", s, c.list())
}
