// Package dashboard implements the command "weir dashboard". The command serves the page of the
// package dashboard in the root module.
package dashboard

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/queues"
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
	queues    bool
	writes    pageWrites
	letters   pageLetters
}

func Command(t cli.Terminal) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "dashboard --store URL [--addr 127.0.0.1:4568]",
		Short: "Show applications on a page in a browser",
		Long: `Serves a page that shows the applications of a store: the state of each and the
reason for it, the lag, the workers, and the shards of a stream over time, with
their splits, merges and checkpoints. The page is read-only unless
--allow-writes is set.

The page reads the store, so it also shows applications that have no live
worker. While the page is open in a browser, it lists the shards of each stream
every 30 s and reads each shard once every 5 s for the lag (less often with more
than 100 shards). These reads count against the five per second that all readers
of a shard share. With --no-kinesis the page shows only what is in the store.

The page has no password, so it listens on this machine only unless --addr says
otherwise. It never shows payloads. It does show the names of streams, shards
and workers, positions and error texts. Behind a reverse proxy that passes its
own host name on, set --host to that name.

With --queues the page shows the queues of the account and region, with a view
for each and its dead letters. The numbers come from CloudWatch, which bills
them: six metrics of each queue every 30 s while the page is open. A look at dead
letters hides them from other processes for a moment.

With --allow-writes, anyone with access to the page can pause and resume an
application or a stream, drain a worker, and move checkpoints, under the same
rules as "weir group". The page shows each change first, saves the previous
progress in --dump-dir, and refuses a change if the state has changed since it
was shown. Each write is logged on standard error. If others can reach the page,
put a proxy with authentication in front of it and set --behind-auth. A write
then requires that the proxy names the user in --user-header.

With --dead the page lists dead letters, without their keys, and with their
payloads only with --show-payloads. With --retry-exec as well, the listed dead
letters can be passed to a command, one after the other, for 50 s at most. "weir
dead retry" does the same without a time limit.`,
		Example: `  weir dashboard --store sqlite:billing.db
  weir dashboard --store dynamodb:weir --addr 127.0.0.1:9000
  weir dashboard --store sqlite:billing.db --no-kinesis
  weir dashboard --queues
  weir dashboard --store sqlite:billing.db --allow-writes
  weir dashboard --store sqlite:billing.db --dead file:dead.ndjson --allow-writes --retry-exec ./handle
  weir dashboard --store dynamodb:weir --allow-writes --behind-auth --host tools.example.com`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := o.url(cmd)
			if err != nil {
				return err
			}
			if o.addr, err = serve.Addr("--addr", o.addr); err != nil {
				return err
			}
			for _, h := range o.hosts {
				if !serve.HostForm.MatchString(h) {
					return cli.Usagef("--host %q: give only a name, such as weir.example.com", h)
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
	cmd.Flags().StringVar(&o.addr, "addr", "127.0.0.1:4568", "`ADDR` to listen on; a port alone means this machine, and port 0 any free port")
	cmd.Flags().StringArrayVar(&o.hosts, "host", nil, "a host `NAME` that a reverse proxy on this machine uses for requests; may be repeated")
	cmd.Flags().BoolVar(&o.noKinesis, "no-kinesis", false, "do not call Kinesis: show only what is in the store, without shards and lag")
	cmd.Flags().BoolVar(&o.queues, "queues", false, "show the queues of the account and region, too; then --store is not needed")
	o.writes.register(cmd)
	o.letters.register(cmd)
	return cmd
}

// url returns the URL of the store. A page of queues needs no store.
func (o *options) url(cmd *cobra.Command) (stores.URL, error) {
	if !o.queues || o.Store != "" {
		return o.URL(cmd)
	}
	if o.writes.on || o.letters.dead != "" {
		return stores.URL{}, cli.Usagef("--allow-writes and --dead are about applications: add --store")
	}
	return stores.Parse("memory:")
}

func (o *options) run(ctx context.Context, t cli.Terminal, url stores.URL) error {
	store, err := url.Open(ctx, t, &o.AWS, false, false)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // the store was only read
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
			return fmt.Errorf("%w; with --no-kinesis the page shows only the content of the store", err)
		}
		options.Kinesis, options.Lags = client, shardlag.Asker(client)
	}
	if o.queues {
		flags := queues.Flags{AWS: o.AWS}
		reader, err := flags.Reader(ctx, t)
		if err != nil {
			return err
		}
		options.Queues = pageQueues{reader}
	}
	closeLetters, err := o.letters.open(ctx, t, &o.AWS, &options)
	if err != nil {
		return err
	}
	defer func() { _ = closeLetters() }() // each mark has been written already
	o.writes.allow(t, &options)
	return o.writes.serve(ctx, t, o.addr, dashboard.Handler(stores.Shown{Store: store}, options))
}
