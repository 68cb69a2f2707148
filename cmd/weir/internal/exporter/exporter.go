// Package exporter implements the command "weir exporter". The command watches applications without
// running a worker, and serves their metrics.
package exporter

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/serve"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/internal/hostcheck"
	"github.com/weir-go/weir/lease"
)

type options struct {
	target.Flags
	apps      []string
	streams   []string
	addr      string
	every     time.Duration
	share     float64
	noKinesis bool
}

func Command(t cli.Terminal) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "exporter --store URL [--app NAME] [--addr 127.0.0.1:4569]",
		Short: "Serve metrics of applications, even without live workers",
		Long: `Watches applications from the outside and serves the results: /metrics for
Prometheus, and /lag.json for autoscalers and scripts (/lag.json?app=NAME for
one application). Each shard is ok, behind, catching up, falling behind, unread,
stalled, going back, or near the end of retention, and has a lag. The verdict on
an application has the state of its worst shard, the cause and the next steps.
Without --app all applications of the store are watched, including those that
are added later.

The store is read every --every. Each shard is read at its checkpoint at most
that often, and less often with many shards: 20 reads per second in total, and
at most --read-share of the five per second that all readers of a shard share.
With --no-kinesis there is no lag: the metrics then cover the workers, the
owners of the leases, the errors that workers report, and the time since each
checkpoint moved. A checkpoint also does not move while nothing is written to
the shard.

The exporter has no password, so it listens on this machine only unless --addr
says otherwise. It changes nothing.`,
		Example: `  weir exporter --store sqlite:billing.db
  weir exporter --store dynamodb:weir --app billing --app fraud --addr 0.0.0.0:4569
  curl 'http://127.0.0.1:4569/lag.json?app=billing' | jq .verdict.sentence`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := o.URL(cmd)
			if err != nil {
				return err
			}
			if o.addr, err = serve.Addr("--addr", o.addr); err != nil {
				return err
			}
			switch {
			case o.every < time.Second || o.every > 10*time.Minute:
				return cli.Usagef("--every %v: want 1s to 10m", o.every)
			case !(o.share > 0 && o.share <= 1):
				return cli.Usagef("--read-share %v: want more than 0, up to 1", o.share)
			case o.noKinesis && cmd.Flags().Changed("read-share"):
				return cli.Usagef("--read-share does not apply with --no-kinesis, which reads no stream: leave one of them out")
			}
			for _, app := range o.apps {
				if err := lease.CheckApp(app); err != nil {
					return cli.Usagef("--app: %s", strings.TrimPrefix(err.Error(), "lease: "))
				}
			}
			if err := awsconf.CheckStreams(o.streams...); err != nil {
				return err
			}
			return o.run(cmd.Context(), t, url)
		},
	}
	o.RegisterStore(cmd)
	cmd.Flags().StringArrayVar(&o.apps, "app", nil, "an application to watch, by `NAME`; may be repeated (default: all of the store)")
	cmd.Flags().StringArrayVar(&o.streams, "stream", nil, "only shards of this stream, by `NAME`; may be repeated")
	cmd.Flags().StringVar(&o.addr, "addr", "127.0.0.1:4569", "`ADDR` to listen on; a port alone means this machine, and port 0 any free port")
	cmd.Flags().DurationVar(&o.every, "every", 15*time.Second, "how often to read the store, 1s to 10m")
	cmd.Flags().Float64Var(&o.share, "read-share", 0.05, "the part of a shard's five reads a second that may be used, up to 1")
	cmd.Flags().BoolVar(&o.noKinesis, "no-kinesis", false, "do not call Kinesis: the lag is then unknown")
	cli.MustComplete(cmd, "every", "5s", "15s", "1m")
	cli.MustComplete(cmd, "read-share", "0.05", "0.2")
	return cmd
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
	w := &watcher{store: stores.Shown{Store: store}, opts: o, told: t, apps: map[string]*watchedApp{}}
	for _, app := range o.apps {
		w.apps[app] = &watchedApp{name: app}
	}
	if len(o.apps) == 0 {
		if _, err := w.store.Apps(ctx); err != nil {
			return fmt.Errorf("%w; name applications with --app", err)
		}
	}
	if !o.noKinesis {
		client, err := o.AWS.Kinesis(ctx, t)
		if err != nil {
			return fmt.Errorf("%w; with --no-kinesis the exporter reports only what is in the store", err)
		}
		w.kinesis = client
	}
	ctx, cancel := context.WithCancel(ctx)
	watching := make(chan struct{})
	go func() { // ends with ctx
		defer close(watching)
		w.run(ctx)
	}()
	err = serve.Until(ctx, t, o.addr, w.handler(), serve.WithoutPassword, func(addr string) string {
		return fmt.Sprintf("metrics: http://%s/metrics and /lag.json", addr)
	})
	cancel()
	<-watching
	return err
}

// handler serves the latest results of the watcher.
func (w *watcher) handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(exported{w})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /lag.json", w.serveLag)
	mux.HandleFunc("GET /{$}", func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(rw, "weir exporter: /metrics for Prometheus, /lag.json for autoscalers") // the client may have disconnected
	})
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !hostcheck.Allows(r) {
			http.Error(rw, "over a loopback address, metrics are served only to requests for localhost and IP addresses", http.StatusForbidden)
			return
		}
		rw.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(rw, r)
	})
}
