package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/lease"
)

func groupCommand(t terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "group",
		Short: "Look at the workers and the progress of an application",
		Long:  "Looks at the group of workers that make an application: who holds which shard, and how far it got.",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(groupDescribeCommand(t))
	return cmd
}

type describeOptions struct {
	aws    awsFlags
	out    format
	app    string
	store  string
	stream string
	noLag  bool
	watch  time.Duration
}

func groupDescribeCommand(t terminal) *cobra.Command {
	var o describeOptions
	cmd := &cobra.Command{
		Use:   "describe --app NAME --store URL",
		Short: "Show leases, owners, checkpoints, lag, workers and leader",
		Long: `Shows the leases of an application: who holds which shard, at which epoch, how far it got and how far it is behind;
and its workers, with the one that leads. It changes nothing.

The lag of a shard is the age of the oldest record that is not handled yet, asked from Kinesis itself by one read at
the checkpoint. These reads count against the five a second that a shard allows; --no-lag does without.

Whether a worker lives shows in its beats, so the store is looked at until every worker has been seen to beat, for
two seconds at most (see --watch). A worker that is told to beat less often than that looks silent though it lives.`,
		Example: `  weir group describe --app billing --store sqlite:billing.db
  weir group describe --app billing --store dynamodb:weir --no-lag
  weir group describe --app billing --store sqlite:billing.db -o json | jq '.leases[] | {shard, lag_ms}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := require(cmd, "app", "store"); err != nil {
				return err
			}
			url, err := parseStore(o.store)
			if err != nil {
				return err
			}
			if url.kind == storeMemory {
				return usagef("memory: belongs to the worker that uses it: nobody else can look into it")
			}
			if o.watch < 0 || o.watch > time.Minute {
				return usagef("--watch %v: want 0 to 1m", o.watch)
			}
			return o.run(cmd.Context(), t, url)
		},
	}
	cmd.Flags().StringVar(&o.app, "app", "", "application")
	registerStore(cmd, &o.store)
	cmd.Flags().StringVar(&o.stream, "stream", "", "only the leases of this stream, by name")
	cmd.Flags().BoolVar(&o.noLag, "no-lag", false, "do not ask Kinesis for the lag")
	cmd.Flags().DurationVar(&o.watch, "watch", 2*time.Second, "how long to look for beats at most; 0 does not")
	o.out.register(cmd, "output format")
	o.aws.register(cmd, true)
	return cmd
}

func (o *describeOptions) run(ctx context.Context, t terminal, url storeURL) error {
	store, err := url.open(ctx, t, &o.aws, false, false)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // only read from
	view, err := store.view(ctx, o.app)
	if err != nil {
		return err
	}
	if len(view.Leases) == 0 && len(view.Workers) == 0 {
		return fmt.Errorf("there is no application %s in %s: check --app and --store", o.app, o.store)
	}
	beating := make(chan map[string]bool, 1)
	go func() { beating <- watchBeats(ctx, store, o.app, view, o.watch) }()
	lags := map[lease.Key]lag{}
	if !o.noLag {
		lags = o.lags(ctx, t, view)
	}
	d := describe(o.app, o.stream, view, <-beating, lags)
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(d.Leases) == 0 && o.stream != "" {
		return fmt.Errorf("application %s has no leases of a stream %s", o.app, o.stream)
	}
	if o.out == formatJSON {
		return json.NewEncoder(t.out).Encode(d)
	}
	_, err = fmt.Fprint(t.out, d.text())
	return err
}

// lags asks for the lag of every lease that is not finished. When Kinesis cannot be asked the rest is shown all the same.
func (o *describeOptions) lags(ctx context.Context, t terminal, view lease.View) map[lease.Key]lag {
	client, err := o.aws.kinesis(ctx, t)
	if err != nil {
		t.note("no lag: %s", explain(err))
		return nil
	}
	lags := askLags(ctx, client, view.Leases, o.stream)
	for _, l := range lags {
		if l.err != nil {
			t.note("the lag of some shards is not known: %s", explain(l.err))
			break
		}
	}
	return lags
}

// watchBeats looks until the beat count of every session has moved, or for so long. A nil result says nothing.
func watchBeats(ctx context.Context, store lease.Store, app string, first lease.View, length time.Duration) map[string]bool {
	if length == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	before := map[string]uint64{}
	for _, w := range first.Workers {
		if !w.Ended {
			before[w.Session] = w.Beat
		}
	}
	seen := map[string]bool{}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for len(seen) < len(before) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return seen
		}
		view, err := store.View(ctx, app, first.Revision)
		if err != nil {
			continue // the next look may work, and the deadline ends it
		}
		for _, w := range view.Workers {
			if beat, known := before[w.Session]; known && w.Beat != beat {
				seen[w.Session] = true
			}
		}
	}
	return seen
}
