//go:build unix

package http1

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
)

// On a real socket, a connection is checked before it is reused. A closed connection is not used,
// so even a request that must not be repeated succeeds. A connection with unexpected data is not
// reused.
func TestKeptSocketsAreLookedAt(t *testing.T) {
	t.Parallel()
	serverTLS, clientTLS := overTLS(t)
	const wrong = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"
	for _, c := range []struct {
		name  string
		extra string // data that is written after the client has read the first answer
		close bool
		conns int // total number of connections
	}{
		{"nothing happens", "", false, 1},
		{"it is closed", "", true, 2},
		{"another answer comes", wrong, false, 2},
		{"a byte comes", "x", false, 2},
		{"another answer comes and it is closed", wrong, true, 2},
	} {
		for _, secure := range []bool{false, true} {
			name := c.name
			if secure {
				name += ", TLS"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				listener, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = listener.Close() }()
				read, happened := make(chan struct{}), make(chan struct{})
				served := make(chan int)
				go func() {
					n := 0
					defer func() { served <- n }()
					for {
						conn, err := listener.Accept()
						if err != nil {
							return
						}
						if n++; secure {
							conn = tls.Server(conn, serverTLS)
						}
						first := n == 1
						go func() {
							defer func() { _ = conn.Close() }()
							r := bufio.NewReader(conn)
							for takeRequest(r) {
								_, _ = io.WriteString(conn, small)
								if first {
									<-read
									_, _ = io.WriteString(conn, c.extra)
									if c.close {
										_ = conn.Close()
									}
									close(happened)
									first = false
								}
							}
						}()
					}
				}()
				scheme := "http"
				if secure {
					scheme = "https"
				}
				client := New(Options{TLS: clientTLS})
				h, err := client.Host(scheme, listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				for i := range 2 {
					r, err := h.Do(t.Context(), []byte(request), false, Bound{})
					if err != nil {
						t.Fatal(err)
					}
					if b, err := io.ReadAll(r); string(b) != "hello" || err != nil {
						t.Errorf("answer %d is %q, %v", i+1, b, err)
					}
					_ = r.Close()
					if i == 0 {
						close(read)
						<-happened
						waitForData(t, h, c.extra != "" || c.close)
						// A bound that has passed does not affect whether the connection is usable.
						kept := h.idle[0]
						_ = kept.SetDeadline(mixed)
						kept.set = mixed
					}
				}
				client.CloseIdle()
				_ = listener.Close()
				if n := <-served; n != c.conns {
					t.Errorf("%d connections, want %d", n, c.conns)
				}
			})
		}
	}
}

// waitForData waits until the kept connection has data. Over loopback this takes a moment.
func waitForData(t *testing.T, h *Host, some bool) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.idle) != 1 {
		t.Fatalf("%d connections are kept", len(h.idle))
	}
	if !some {
		return
	}
	if err := h.idle[0].under.raw.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return !errors.Is(err, syscall.EAGAIN)
	}); err != nil {
		t.Fatal(err)
	}
}

// A probe that finds no data does not make a TLS connection unusable.
func TestTLSWithoutWaiting(t *testing.T) {
	t.Parallel()
	serverTLS, clientTLS := overTLS(t)
	near, far := net.Pipe()
	defer func() { _ = far.Close() }()
	go func() {
		conn := tls.Server(far, serverTLS)
		r := bufio.NewReader(conn)
		for takeRequest(r) {
			_, _ = io.WriteString(conn, small)
		}
	}()
	clientTLS.ServerName = "example.com"
	under := newSocket(near)
	top := tls.Client(under, clientTLS)
	c := newConn(&Host{client: New(Options{})}, under, top)
	defer func() { _ = near.Close() }()
	for i := range 3 {
		if err := c.ask(t.Context(), outgoing{whole: []byte(request)}); err != nil {
			t.Fatal(i, err)
		}
		h, err := c.answer(t.Context())
		if err != nil || h.length != 5 {
			t.Fatal(i, err)
		}
		if _, err := io.ReadFull(&Response{c: c, ctx: t.Context(), left: 5}, make([]byte, 5)); err != nil {
			t.Fatal(i, err)
		}
		for range 3 {
			if !c.reusable() {
				t.Fatalf("after answer %d the connection is abandoned", i)
			}
		}
	}
}
