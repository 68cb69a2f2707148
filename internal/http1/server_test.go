package http1

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

const request = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"

// script is a network with one server, the function serve. Each connection is one call of serve.
type script struct {
	mu    sync.Mutex
	dials int
	live  int // number of connections that the client has not closed
	serve func(n int, c net.Conn)
	done  sync.WaitGroup
}

func (s *script) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.dials
	s.dials++
	s.live++
	s.done.Go(func() {
		s.serve(n, far)
		_ = far.Close()
	})
	return &counted{Conn: near, s: s}, nil
}

func (s *script) counts() (dials, live int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dials, s.live
}

type counted struct {
	net.Conn
	s    *script
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() {
		c.s.mu.Lock()
		c.s.live--
		c.s.mu.Unlock()
	})
	return c.Conn.Close()
}

// takeRequest reads one request. It returns false at the end of the connection.
func takeRequest(r *bufio.Reader) bool {
	q, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, q.Body)
	return err == nil
}

// answers is a server that answers each request with the same text.
func answers(text string) func(int, net.Conn) {
	return func(_ int, c net.Conn) {
		r := bufio.NewReader(c)
		for takeRequest(r) {
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	}
}

// host returns a host whose server is the script.
func (s *script) host(tb testing.TB, o Options) *Host {
	tb.Helper()
	o.DialContext = s.dial
	h, err := New(o).Host("http", "h")
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

// ask sends a request and reads the whole answer.
func ask(ctx context.Context, h *Host) (status int, body string, err error) {
	r, err := h.Do(ctx, []byte(request), true, Bound{})
	if err != nil {
		return 0, "", err
	}
	b, err := io.ReadAll(r)
	return r.Status, string(b), errors.Join(err, r.Close())
}

// held returns the numbers of open and idle connections of a host, and of waiting callers.
func (h *Host) held() (open, idle, waiting int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open, len(h.idle), h.waiting.Len()
}

// overTLS returns a server configuration, and a client configuration that trusts it.
func overTLS(tb testing.TB) (server, client *tls.Config) {
	tb.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return &tls.Config{Certificates: s.TLS.Certificates, NextProtos: []string{protocol}}, &tls.Config{RootCAs: roots}
}
