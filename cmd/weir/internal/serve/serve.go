// Package serve serves pages, metrics and health checks over HTTP, at the address in a flag.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
)

// Addr returns the address to listen on. The server listens only on this machine, unless the flag's
// value contains a host.
func Addr(flag, addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		host, port = "", addr // only a port was given
	}
	if host == "" {
		host = "127.0.0.1"
	}
	addr = net.JoinHostPort(host, port)
	return addr, CheckAddr(flag, addr)
}

// Note returns a text about where a server listens, and which machines can reach it.
func Note(what string, addr net.Addr, paths string) string {
	note := fmt.Sprintf("%s: http://%s%s", what, addr, paths)
	if tcp, ok := addr.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		note += "; anyone with access can read the names of streams and shards"
	}
	return note
}

// CheckAddr returns an error if the value of a flag is not an address to listen on.
func CheckAddr(flag, addr string) error {
	if _, port, err := net.SplitHostPort(addr); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err == nil && n <= 65535 {
			return nil
		}
	}
	return cli.Usagef("%s %q: write it like 127.0.0.1:4567", flag, addr)
}

func ListenError(flag, addr string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("the address %s is taken by another program, perhaps another weir: stop that one, or choose a port with %s", addr, flag)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("this user may not listen on %s: choose a port above 1023 with %s", addr, flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("this machine has no address %s: try 127.0.0.1:4567", addr)
	}
	return fmt.Errorf("no server on %s: %w", addr, err)
}

var HostForm = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9_.-]{0,252}[a-zA-Z0-9])?$`)

// Until serves a page on an address until ctx ends. It prints the address. open is the warning to
// print if other machines can reach the address.
func Until(ctx context.Context, t cli.Terminal, addr string, page http.Handler, open string, where func(addr string) string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return ListenError("--addr", addr, err)
	}
	server := &http.Server{
		Handler: page, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Note("%s", where(listener.Addr().String()))
	if tcp, ok := listener.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		t.Note("%s is not only for this machine, and %s", listener.Addr(), open)
	}
	select {
	case <-ctx.Done():
	case err := <-done:
		return fmt.Errorf("serving %s: %w", addr, err)
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	err = server.Shutdown(ending)
	if errors.Is(err, context.DeadlineExceeded) { // a client that does not read its answer must not delay the end
		err = server.Close()
	}
	if served := <-done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// WithoutPassword is the warning for an address that other machines can reach without a password.
const WithoutPassword = "anyone with access can read names of streams, shards and workers, positions and errors, without a password"
