package group

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/shardlag"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
)

type describeOptions struct {
	target.Flags
	out    cli.Format
	stream string
	noLag  bool
	look   target.LookFlag
	again  bool
}

func describeCommand(t cli.Terminal) *cobra.Command {
	var o describeOptions
	cmd := &cobra.Command{
		Use:   "describe --app NAME --store URL",
		Short: "Show the verdict, leases, owners, checkpoints, lag and workers",
		Long: `Shows the leases of an application (the owner of each shard, its epoch,
checkpoint, lag and load) and its workers (which one is the leader, and the
problems that each reports). It changes nothing.

The verdict comes first: the state, the cause with its evidence, what follows if
nothing changes, and the next steps. Its commands take the store from WEIR_STORE.

The lag of a shard is the age of its oldest record that is not handled yet.
Kinesis reports it in one read at the checkpoint, which counts against the five
reads per second that a shard allows. --no-lag omits these reads.

LOAD is about how many bytes per second the owner of a shard has handled,
averaged over about a minute. Workers report it in steps of a factor of 1.4. It
is "–" for a shard that no living worker holds. The load of a worker is the sum
over its shards. The leader balances by load. It is not a gauge: it takes about
three minutes to follow a change, and if records wait, it shows what is handled
and not what arrives.

A shard is "unread" if its owner sends no heartbeats. What a worker reported
before it ended or fell silent is not shown.

A worker is alive if it sends heartbeats, so the command watches the store until
it has seen a heartbeat from every worker, for at most two heartbeat intervals
(see --look) and at most 10 s. A worker with a longer interval that was not
seen is "unknown".

On a terminal the tables fit the screen: checkpoints and long names are cut, and
"…" marks the cut. Output for a file or another program is not cut, unless
COLUMNS is set.`,
		Example: `  weir group describe --app billing --store sqlite:billing.db
  weir group describe --app billing --store sqlite:billing.db --watch
  weir group describe --app billing --store dynamodb:weir --no-lag
  weir group describe --app billing --store sqlite:billing.db -o json | jq '.leases[] | {shard, lag_ms}'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := o.URL(cmd, "app")
			if err != nil {
				return err
			}
			if err := o.look.Check(true); err != nil {
				return err
			}
			if !o.again {
				return o.run(cmd.Context(), t, url)
			}
			return cli.Again(cmd.Context(), t, func(ctx context.Context, t cli.Terminal) (string, error) {
				var out strings.Builder
				t.Out = &out
				err := o.run(ctx, t, url)
				return out.String(), err
			})
		},
	}
	o.Register(cmd)
	cmd.Flags().StringVar(&o.stream, "stream", "", "only the leases of the stream `NAME`")
	cmd.Flags().BoolVar(&o.noLag, "no-lag", false, "do not read the lag from Kinesis")
	o.look.Register(cmd, "how long to look for heartbeats at most, by default for two of the slowest worker's; 0 does not")
	cli.RegisterWatch(cmd, &o.again)
	o.out.Register(cmd, "output format")
	return cmd
}

func (o *describeOptions) run(ctx context.Context, t cli.Terminal, url stores.URL) error {
	store, view, err := o.Open(ctx, t, url)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // the store was only read
	if _, err := target.LeasesOf(o.App, view.Leases, o.stream); err != nil {
		return err
	}
	looked := o.look.ForBeats(view)
	beating := make(chan map[string]bool, 1)
	go func() { beating <- target.WatchBeats(ctx, store, o.App, view, looked) }()
	lags, retentions := map[lease.Key]shardlag.Lag{}, map[string]time.Duration(nil)
	if !o.noLag {
		lags, retentions = o.lags(ctx, t, view)
	}
	beats := <-beating
	d := describe(o.App, o.stream, view, beats, looked, lags)
	look := shardlag.LookAt(time.Now(), view, lags)
	look.Silent, look.Retention = silentIn(view, beats, looked), retentions
	past, err := shardlag.Past(ctx, store, o.App, look.At)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		t.Note("the history of the application is not known: %s", explain.Error(store.Explain(err)))
	}
	d.Verdict = verdict(o.App, o.stream, look, past, lags)
	if o.out == cli.FormatJSON {
		return json.NewEncoder(t.Out).Encode(d)
	}
	_, err = fmt.Fprint(t.Out, d.text(t.Columns(), t.Prose(), t.Findings()))
	return err
}

// lags queries the lag of every unfinished lease, and the retention of the streams. If Kinesis
// cannot be queried, the command still shows everything else.
func (o *describeOptions) lags(
	ctx context.Context, t cli.Terminal, view lease.View,
) (map[lease.Key]shardlag.Lag, map[string]time.Duration) {
	client, err := o.AWS.Kinesis(ctx, t)
	if err != nil {
		t.Note("no lag: %s", explain.Error(err))
		return nil, nil
	}
	lags := shardlag.Ask(ctx, t, client, view.Leases, o.stream)
	if _, err := shardlag.FirstError(lags); err != nil {
		t.Note("the lag of some shards is not known: %s", explain.Error(err))
	}
	return lags, shardlag.Retentions(ctx, client, target.StreamsOf(view.Leases), nil)
}

// verdict returns the verdict on the application, or on its shards of one stream.
func verdict(
	app, stream string, look observe.Look, past observe.Past, lags map[lease.Key]shardlag.Lag,
) health.Verdict {
	var w observe.Watch
	w.Remember(past)
	w.Add(look)
	facts := w.Facts(app, look.At)
	facts.Shards = slices.DeleteFunc(facts.Shards, func(s health.ShardFacts) bool {
		return stream != "" && s.Stream != stream
	})
	if _, err := shardlag.FirstError(lags); err != nil {
		facts.NoLag = explain.Error(err)
	}
	return health.Conclude(facts)
}

// silentIn returns the sessions that describe as silent.
func silentIn(v lease.View, beating map[string]bool, looked time.Duration) map[string]bool {
	silent := map[string]bool{}
	for _, w := range v.Workers {
		silent[w.Session] = workerState(w, beating, looked) == "silent"
	}
	return silent
}
