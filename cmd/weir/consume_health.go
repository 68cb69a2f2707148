package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir"
)

// healthAddr is where to listen, on this machine alone unless the address names a host.
func healthAddr(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		host, port = "", addr // a port alone
	}
	if host == "" {
		host = "127.0.0.1"
	}
	addr = net.JoinHostPort(host, port)
	return addr, checkAddr("--health", addr)
}

// healthNote says where the checks are, and who learns what from them.
func healthNote(addr net.Addr) string {
	note := fmt.Sprintf("health: http://%s/livez and /readyz", addr)
	if tcp, ok := addr.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		note += "; whoever reaches that learns the names of streams and shards"
	}
	return note
}

// serveHealth answers health checks for the consumer that is there at the time, until stop is
// called.
func serveHealth(ctx context.Context, t terminal, addr string, c *atomic.Pointer[weir.Consumer]) (stop func() error, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, listenError("--health", addr, err)
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.Load().Health().ServeHTTP(w, r) }),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.note("%s", healthNote(listener.Addr()))
	return func() error {
		err := errors.Join(server.Close(), <-done)
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return fmt.Errorf("health checks: %w", err)
	}, nil
}
