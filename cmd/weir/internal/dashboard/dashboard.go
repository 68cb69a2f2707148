// Package dashboard is the command "weir dashboard", which serves the page of package dashboard of
// the root module.
package dashboard

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/serve"
	"github.com/weir-go/weir/cmd/weir/internal/shardlag"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/dashboard"
)

type options struct {
	target.Flags
	addr      string
	hosts     []string
	noKinesis bool
	writes    pageWrites
	letters   pageLetters
}

func Command(t cli.Terminal) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "dashboard --store URL [--addr 127.0.0.1:4568]",
		Short: "Show applications on a page in a browser",
		Long: `Serves a page that shows the applications of a store: the state of each with the reason, the lag, the workers, and the shards
of a stream over time, with their splits, merges and checkpoints. The page only looks unless --allow-writes says otherwise.

It reads the store, so it also shows applications of which no worker lives. From Kinesis it asks for the shards of
a stream each half minute, and for the lag by one read of each shard every 5 s, or less often with more than 100 shards;
such reads count against the five a second that all readers of a shard share. All this only while somebody has the page
open. With --no-kinesis it shows what the store knows.

It asks nobody for a password, so it listens on this machine alone unless --addr says otherwise. Payloads are never on it;
names of streams, shards and workers, positions and error texts are. Behind a reverse proxy that passes its own name on, give
that name with --host.

With --allow-writes whoever reaches it can pause and resume an application or a stream, drain a worker, and move checkpoints,
under the rules of "weir group". What would be done is shown first, the progress as it was is saved in --dump-dir, and what has
changed since it was shown is not done. Each write is told on standard error. Where others reach the page, that needs a
proxy in front that asks for passwords, and --behind-auth to say so; a write is then done only if the proxy names who asks, in
--user-header.

With --dead it shows the records that were given up, without their keys and payloads. With --retry-exec, too, letters that are
shown can be handed to a command, one after the other for 50 s at most, as "weir dead retry" does for as long as it takes.`,
		Example: `  weir dashboard --store sqlite:billing.db
  weir dashboard --store dynamodb:weir --addr 127.0.0.1:9000
  weir dashboard --store sqlite:billing.db --no-kinesis
  weir dashboard --store sqlite:billing.db --allow-writes
  weir dashboard --store sqlite:billing.db --dead file:dead.ndjson --allow-writes --retry-exec ./handle
  weir dashboard --store dynamodb:weir --allow-writes --behind-auth --host tools.example.com`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := o.URL(cmd)
			if err != nil {
				return err
			}
			if o.addr, err = serve.Addr("--addr", o.addr); err != nil {
				return err
			}
			for _, h := range o.hosts {
				if !serve.HostForm.MatchString(h) {
					return cli.Usagef("--host %q: give a name alone, such as weir.example.com", h)
				}
			}
			if err := o.writes.check(cmd, o.addr); err != nil {
				return err
			}
			if err := o.letters.check(cmd, o.writes.on); err != nil {
				return err
			}
			return o.run(cmd.Context(), t, url)
		},
	}
	o.RegisterStore(cmd)
	cmd.Flags().StringVar(&o.addr, "addr", "127.0.0.1:4568", "`ADDR` to listen on; a port alone is on this machine, port 0 is any free one")
	cmd.Flags().StringArrayVar(&o.hosts, "host", nil, "a `NAME` by which a reverse proxy on this machine passes requests on; may be repeated")
	cmd.Flags().BoolVar(&o.noKinesis, "no-kinesis", false, "ask Kinesis for nothing: neither shards nor lag are shown then but what the store knows")
	o.writes.register(cmd)
	o.letters.register(cmd)
	return cmd
}

func (o *options) run(ctx context.Context, t cli.Terminal, url stores.URL) error {
	store, err := url.Open(ctx, t, &o.AWS, false, false)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // only read from
	if _, err := store.ReadApp(ctx, "weir"); err != nil {
		return err
	}
	options := dashboard.Options{Hosts: o.hosts}
	if !o.noKinesis {
		client, err := o.AWS.Kinesis(ctx, t)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("%w; with --no-kinesis the page shows what the store knows", err)
		}
		options.Kinesis, options.Lags = client, shardlag.Asker(client)
	}
	closeLetters, err := o.letters.open(ctx, t, &o.AWS, &options)
	if err != nil {
		return err
	}
	defer func() { _ = closeLetters() }() // each mark is written by itself
	o.writes.allow(t, &options)
	return o.writes.serve(ctx, t, o.addr, dashboard.Handler(stores.Shown{Store: store}, options))
}
