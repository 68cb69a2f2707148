package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/lease"
)

type dashboardOptions struct {
	target
	addr      string
	hosts     []string
	noKinesis bool
	writes    pageWrites
	letters   pageLetters
}

func dashboardCommand(t terminal) *cobra.Command {
	var o dashboardOptions
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
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := o.url(cmd)
			if err != nil {
				return err
			}
			if o.addr, err = servingAddr("--addr", o.addr); err != nil {
				return err
			}
			for _, h := range o.hosts {
				if !hostForm.MatchString(h) {
					return usagef("--host %q: give a name alone, such as weir.example.com", h)
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
	o.registerStore(cmd)
	cmd.Flags().StringVar(&o.addr, "addr", "127.0.0.1:4568", "`ADDR` to listen on; a port alone is on this machine, port 0 is any free one")
	cmd.Flags().StringArrayVar(&o.hosts, "host", nil, "a `NAME` by which a reverse proxy on this machine passes requests on; may be repeated")
	cmd.Flags().BoolVar(&o.noKinesis, "no-kinesis", false, "ask Kinesis for nothing: neither shards nor lag are shown then but what the store knows")
	o.writes.register(cmd)
	o.letters.register(cmd)
	return cmd
}

func (o *dashboardOptions) run(ctx context.Context, t terminal, url storeURL) error {
	store, err := url.open(ctx, t, &o.aws, false, false)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // only read from
	if _, err := store.view(ctx, "weir"); err != nil {
		return err
	}
	options := dashboard.Options{Hosts: o.hosts}
	if !o.noKinesis {
		client, err := o.aws.kinesis(ctx, t)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("%w; with --no-kinesis the page shows what the store knows", err)
		}
		options.Kinesis, options.Lags = client, lagsFrom(client)
	}
	closeLetters, err := o.letters.open(ctx, t, &o.aws, &options)
	if err != nil {
		return err
	}
	defer func() { _ = closeLetters() }() // each mark is written by itself
	o.writes.allow(t, &options)
	return o.writes.serve(ctx, t, o.addr, dashboard.Handler(shownStore{store}, options))
}

// lagsFrom asks shards how far they are behind, by one read of each.
func lagsFrom(client *kinesis.Client) func(context.Context, []lease.Lease) (map[lease.Key]dashboard.Lag, error) {
	return func(ctx context.Context, leases []lease.Lease) (map[lease.Key]dashboard.Lag, error) {
		lags := askLags(ctx, silent, client, leases, "")
		known := map[lease.Key]dashboard.Lag{}
		for key, l := range lags {
			if l.err == nil {
				known[key] = dashboard.Lag{Behind: l.age, Expired: l.expired}
			}
		}
		if n, err := firstTrouble(lags); n > 0 {
			return known, fmt.Errorf("%s: %s", some(n, "shard"), explain(err))
		}
		return known, nil
	}
}

// shownStore is a store that lists its applications, with errors for people.
type shownStore struct{ openStore }

// View is that of the store.
func (s shownStore) View(ctx context.Context, app, since string) (lease.View, error) {
	v, err := s.openStore.View(ctx, app, since)
	return v, s.said(err)
}

// Apps makes it a lease.Admin.
func (s shownStore) Apps(ctx context.Context) ([]string, error) {
	admin, err := s.admin()
	if err != nil {
		return nil, err
	}
	apps, err := admin.Apps(ctx)
	return apps, s.said(err)
}

// Apply is that of the store.
func (s shownStore) Apply(ctx context.Context, app string, actions []lease.Action) ([]bool, error) {
	did, err := s.openStore.Apply(ctx, app, actions)
	return did, s.said(err)
}

// Remove is not for a page.
func (s shownStore) Remove(context.Context, string) error {
	return errors.New("a page removes nothing")
}

// PutHistory is not for a page that only looks.
func (s shownStore) PutHistory(context.Context, string, lease.HistoryChunk) error {
	return errors.New("this page only looks")
}

// History makes it a lease.Historian.
func (s shownStore) History(ctx context.Context, app string, since int64) (chunks []lease.HistoryChunk, err error) {
	historian, can := s.Store.(lease.Historian)
	if !can {
		return nil, fmt.Errorf("a %s store keeps no history", s.url.kind)
	}
	err = s.asks(ctx, func(ctx context.Context) error {
		chunks, err = historian.History(ctx, app, since)
		return err
	})
	return chunks, s.said(err)
}

func (s shownStore) said(err error) error {
	if err == nil {
		return nil
	}
	return plainError{explain(s.trouble(err)), err}
}

// withoutPassword is what whoever reaches an address learns.
const withoutPassword = "whoever reaches it sees names of streams, shards and workers, positions and errors, without a password"

// serveUntil serves on an address until ctx ends, and says where. open is what it means that not
// only this machine reaches it.
func serveUntil(ctx context.Context, t terminal, addr string, page http.Handler, open string, where func(addr string) string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return listenError("--addr", addr, err)
	}
	server := &http.Server{
		Handler: page, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.note("%s", where(listener.Addr().String()))
	if tcp, ok := listener.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		t.note("%s is not only for this machine, and %s", listener.Addr(), open)
	}
	select {
	case <-ctx.Done():
	case err := <-done:
		return fmt.Errorf("serving %s: %w", addr, err)
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	err = server.Shutdown(ending)
	if errors.Is(err, context.DeadlineExceeded) { // who does not take an answer does not hold it up
		err = server.Close()
	}
	if served := <-done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
