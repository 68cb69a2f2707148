package group

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/shardlag"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/lease"
)

type describeOptions struct {
	target.Flags
	out    cli.Format
	stream string
	noLag  bool
	watch  target.WatchFlag
}

func describeCommand(t cli.Terminal) *cobra.Command {
	var o describeOptions
	cmd := &cobra.Command{
		Use:   "describe --app NAME --store URL",
		Short: "Show leases, owners, checkpoints, lag, workers and leader",
		Long: `Shows the leases of an application: who holds which shard, at which epoch, how far it got, how far it is behind and
what it brings; and its workers, with the one that leads and with what each says is going wrong. It changes nothing.

The lag of a shard is the age of the oldest record that is not handled yet, asked from Kinesis itself by one read at
the checkpoint. These reads count against the five a second that a shard allows; --no-lag does without.

LOAD is the bytes a second that a shard's owner has handled of it, averaged over about a minute and shown in steps of the
factor 1.4; a worker's is the sum of its shards'. The leader balances by it. It is no gauge: after a change it takes
about three minutes to be right, and where records wait it says what is handled, not what arrives.

Whether a worker lives shows in its beats, so the store is looked at until every worker has been seen to beat, for
two beat intervals at most (see --watch), and for no more than 10 s. A worker that beats less often than that and was not seen to is
"unknown".`,
		Example: `  weir group describe --app billing --store sqlite:billing.db
  weir group describe --app billing --store dynamodb:weir --no-lag
  weir group describe --app billing --store sqlite:billing.db -o json | jq '.leases[] | {shard, lag_ms}'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := o.URL(cmd, "app")
			if err != nil {
				return err
			}
			if err := o.watch.Check(true); err != nil {
				return err
			}
			return o.run(cmd.Context(), t, url)
		},
	}
	o.Register(cmd)
	cmd.Flags().StringVar(&o.stream, "stream", "", "only the leases of this stream, by `NAME`")
	cmd.Flags().BoolVar(&o.noLag, "no-lag", false, "do not ask Kinesis for the lag")
	o.watch.Register(cmd, "how long to look for beats at most, by default for two of the slowest worker's; 0 does not")
	o.out.Register(cmd, "output format")
	return cmd
}

func (o *describeOptions) run(ctx context.Context, t cli.Terminal, url stores.URL) error {
	store, view, err := o.Open(ctx, t, url)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // only read from
	if _, err := target.LeasesOf(o.App, view.Leases, o.stream); err != nil {
		return err
	}
	looked := o.watch.ForBeats(view)
	beating := make(chan map[string]bool, 1)
	go func() { beating <- target.WatchBeats(ctx, store, o.App, view, looked) }()
	lags := map[lease.Key]shardlag.Lag{}
	if !o.noLag {
		lags = o.lags(ctx, t, view)
	}
	d := describe(o.App, o.stream, view, <-beating, looked, lags)
	if err := ctx.Err(); err != nil {
		return err
	}
	if o.out == cli.FormatJSON {
		return json.NewEncoder(t.Out).Encode(d)
	}
	_, err = fmt.Fprint(t.Out, d.text())
	return err
}

// lags asks for the lag of every lease that is not finished. When Kinesis cannot be asked the rest
// is shown all the same.
func (o *describeOptions) lags(ctx context.Context, t cli.Terminal, view lease.View) map[lease.Key]shardlag.Lag {
	client, err := o.AWS.Kinesis(ctx, t)
	if err != nil {
		t.Note("no lag: %s", explain.Error(err))
		return nil
	}
	lags := shardlag.Ask(ctx, t, client, view.Leases, o.stream)
	if _, err := shardlag.FirstError(lags); err != nil {
		t.Note("the lag of some shards is not known: %s", explain.Error(err))
	}
	return lags
}
