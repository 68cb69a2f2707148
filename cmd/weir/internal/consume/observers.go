package consume

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/serve"
)

// observers serves a worker's health and metrics over HTTP.
type observers struct {
	health, metrics string               // addresses to listen on; "" turns a server off
	told            prometheus.Collector // used with an address for metrics
}

// checked is a consumer that health checks are about.
type checked interface{ HealthHandler() http.Handler }

// serve answers health checks and scrapes of metrics until stop is called. Health checks use the
// consumer that c returns at that time. If both addresses are equal, one server serves both.
func (o observers) serve(ctx context.Context, t cli.Terminal, c func() checked) (stop func() error, err error) {
	checks := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c().HealthHandler().ServeHTTP(w, r) })
	var stops []func() error
	stop = func() error {
		var all []error
		for _, f := range stops {
			all = append(all, f())
		}
		return errors.Join(all...)
	}
	one := func(flag, what, addr, paths string, h http.Handler) {
		if err != nil || addr == "" {
			return
		}
		var end func() error
		if end, err = serveHTTP(ctx, t, flag, what, addr, paths, h); err == nil {
			stops = append(stops, end)
		}
	}
	if o.health != "" && o.health == o.metrics {
		mux := http.NewServeMux()
		mux.Handle("/", checks)
		mux.Handle("/metrics", scrapes(o.told))
		one("--health", "health and metrics", o.health, "/livez, /readyz and /metrics", mux)
	} else {
		one("--health", "health", o.health, "/livez and /readyz", checks)
		if o.metrics != "" {
			mux := http.NewServeMux()
			mux.Handle("/metrics", scrapes(o.told))
			one("--metrics", "metrics", o.metrics, "/metrics", mux)
		}
	}
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// serveHTTP serves h on addr until stop is called.
func serveHTTP(ctx context.Context, t cli.Terminal, flag, what, addr, paths string, h http.Handler) (stop func() error, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, serve.ListenError(flag, addr, err)
	}
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Note("%s", serve.Note(what, listener.Addr(), paths))
	return func() error {
		err := errors.Join(server.Close(), <-done)
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return fmt.Errorf("%s: %w", what, err)
	}, nil
}
