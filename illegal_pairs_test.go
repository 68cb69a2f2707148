package weir_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/store/memstore"
)

// TestIllegalPairsAreRefused has a row for each pair of features that cannot be combined, and rows
// for other invalid handlers. The simulation lists the same pairs in
// internal/proof/sim/features.go. New, RunShards, RunPull or Records refuses such a pair with one
// sentence, before anything is read.
func TestIllegalPairsAreRefused(t *testing.T) {
	keys := weir.Concurrency{Keys: 4}
	gives := weir.FailurePolicy{Destination: deadletter.Func(func(context.Context, []deadletter.Letter) error { return nil })}
	attempts, age, bisect := gives, gives, gives
	attempts.MaxAttempts, age.MaxAge, bisect.Bisect = 3, time.Hour, true
	open := func(context.Context, weir.Term) (weir.ShardHandler, error) { return nil, nil }
	pull := func(context.Context, *weir.Puller) error { return nil }
	position := func(context.Context, string, string) (weir.Position, error) { return weir.Position{}, nil }
	notJSON := weir.Filter{By: matchAll{}, NotJSON: weir.FailNotJSON}

	reuses := weir.Options{ReuseBuffers: true}
	type run func(context.Context, *weir.Consumer) error
	shards := func(h weir.ShardHandlers) run {
		return func(ctx context.Context, c *weir.Consumer) error { return c.RunShards(ctx, h) }
	}
	pulls := func(h weir.PullHandler) run {
		return func(ctx context.Context, c *weir.Consumer) error { return c.RunPull(ctx, h) }
	}
	records := func(ctx context.Context, c *weir.Consumer) error {
		for _, err := range c.Records(ctx) {
			return err
		}
		return nil
	}
	for _, tt := range []struct {
		name string
		opts weir.Options
		run  run // nil where New refuses
		says string
	}{
		{"Concurrency and ReuseBuffers", weir.Options{Concurrency: keys, ReuseBuffers: true}, nil, "ReuseBuffers cannot be combined with Options.Concurrency"},
		{"Concurrency and Batching.MaxWait", weir.Options{Concurrency: keys, Batching: weir.Batching{MaxWait: time.Second}}, nil, "Batching.MaxWait cannot be combined with Options.Concurrency"},
		{"Concurrency and Open", weir.Options{Concurrency: keys}, shards(weir.ShardHandlers{Open: open}), "or leave Options.Concurrency out"},
		{"Concurrency and Pull, windows and Hold", weir.Options{Concurrency: keys}, pulls(weir.PullHandler{Pull: pull}), "or leave Options.Concurrency out"},
		{"Concurrency and Position", weir.Options{Concurrency: keys}, shards(weir.ShardHandlers{Open: open, Position: position}), "or leave Options.Concurrency out"},
		{"Concurrency and Idle", weir.Options{Concurrency: keys}, shards(weir.ShardHandlers{Open: open, Idle: time.Second}), "or leave Options.Concurrency out"},
		{"Partitions out of their range", weir.Options{}, shards(weir.ShardHandlers{Open: open, Partitions: 1025}), "ShardHandlers.Partitions 1025 must be"},
		{"Partitions below zero", weir.Options{}, shards(weir.ShardHandlers{Open: open, Partitions: -1}), "ShardHandlers.Partitions -1 must be"},
		{"Partitions and Idle", weir.Options{}, shards(weir.ShardHandlers{Open: open, Partitions: 2, Idle: time.Second}), "ShardHandlers.Idle cannot be combined with ShardHandlers.Partitions"},
		{"Partitions and ReuseBuffers", reuses, shards(weir.ShardHandlers{Open: open, Partitions: 2}), "ReuseBuffers cannot be combined with ShardHandlers.Partitions"},
		{"Partitions and Batching.MaxWait", weir.Options{Batching: weir.Batching{MaxWait: time.Second}}, shards(weir.ShardHandlers{Open: open, Partitions: 2}), "Batching.MaxWait cannot be combined with ShardHandlers.Partitions"},
		{"Concurrency and one partition", weir.Options{Concurrency: keys}, shards(weir.ShardHandlers{Open: open, Partitions: 1}), "or leave Options.Concurrency out"},
		{"Concurrency and Records", weir.Options{Concurrency: keys}, records, "or leave Options.Concurrency out"},
		{"OnFailure and Pull, windows and Hold", weir.Options{OnFailure: gives}, pulls(weir.PullHandler{Pull: pull}), "leave Options.OnFailure out"},
		{"OnFailure.MaxAttempts and Pull", weir.Options{OnFailure: attempts}, pulls(weir.PullHandler{Pull: pull}), "leave Options.OnFailure out"},
		{"OnFailure.MaxAge and Pull", weir.Options{OnFailure: age}, pulls(weir.PullHandler{Pull: pull}), "leave Options.OnFailure out"},
		{"OnFailure.Bisect and Pull", weir.Options{OnFailure: bisect}, pulls(weir.PullHandler{Pull: pull}), "leave Options.OnFailure out"},
		{"OnFailure and Records", weir.Options{OnFailure: attempts}, records, "leave Options.OnFailure out"},
		{"OnFailure.MaxAge and Records", weir.Options{OnFailure: age}, records, "leave Options.OnFailure out"},
		{"OnFailure.Bisect and Records", weir.Options{OnFailure: bisect}, records, "leave Options.OnFailure out"},
		{"DropRepeats and KeepPacked", weir.Options{DropRepeats: true, Aggregates: weir.KeepPacked}, nil, "DropRepeats cannot be combined with KeepPacked"},
		{"no Open", weir.Options{}, shards(weir.ShardHandlers{}), "ShardHandlers.Open is nil: set the function"},
		{"no Pull", weir.Options{}, pulls(weir.PullHandler{}), "PullHandler.Pull is nil: set the function"},
		{"Idle out of its range", weir.Options{}, shards(weir.ShardHandlers{Open: open, Idle: time.Millisecond}), "ShardHandlers.Idle 1ms must be"},
		{"Idle and Pull out of its range", weir.Options{}, pulls(weir.PullHandler{Pull: pull, Idle: time.Millisecond}), "PullHandler.Idle 1ms must be"},
		{"ReuseBuffers and handlers that keep records", reuses, shards(weir.ShardHandlers{Open: open, KeepsRecords: true}), "leave Options.ReuseBuffers out"},
		{"ReuseBuffers and a function that keeps records", reuses, pulls(weir.PullHandler{Pull: pull, KeepsRecords: true}), "leave Options.ReuseBuffers out"},
		{"FailNotJSON and Pull, windows and Hold", weir.Options{Filter: notJSON}, pulls(weir.PullHandler{Pull: pull}), "must be PassNotJSON or DropNotJSON"},
		{"FailNotJSON and Records", weir.Options{Filter: notJSON}, records, "must be PassNotJSON or DropNotJSON"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := tt.opts
			opts.App, opts.Streams, opts.Logger = "app", []string{"s"}, quiet
			c, err := weir.New(kinesis.New(kinesis.Options{Region: "us-east-1"}), memstore.New(), opts)
			if tt.run != nil {
				if err != nil {
					t.Fatalf("New refuses it: %v", err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel() // a pair that is not refused ends at once
				err = tt.run(ctx, c)
			}
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("the error is %v, want %q in it", err, tt.says)
			}
			if of := (*weir.OptionError)(nil); !errors.As(err, &of) || !strings.Contains(of.Option, ".") {
				t.Errorf("the error names no option: %#v", err)
			}
			if text := err.Error(); !strings.HasPrefix(text, "weir: ") || strings.ContainsAny(text, "\n") {
				t.Errorf("the error is not one sentence of weir: %q", text)
			}
		})
	}
}

type matchAll struct{}

func (matchAll) Match([]byte, string, time.Time) (matches, isJSON bool) { return true, true }
