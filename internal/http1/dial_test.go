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
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		host   string
		secure bool
		name   string
		addr   string // "" for an error
	}{
		{"h", false, "h", "h:80"}, {"h", true, "h", "h:443"}, {"h:8080", true, "h", "h:8080"}, {"h:", false, "h", "h:80"},
		{"127.0.0.1:1", false, "127.0.0.1", "127.0.0.1:1"}, {"[::1]", true, "::1", "[::1]:443"}, {"[::1]:1", true, "::1", "[::1]:1"},
		{"", false, "", ""}, {":80", false, "", ""}, {"::1", false, "", ""}, {"a b", false, "", ""}, {"h\r\nX: y", false, "", ""}, {"h/p", false, "", ""},
		{"u@h", false, "", ""}, {"bücher", false, "", ""}, {"[fe80::1%25eth0]", false, "", ""},
	} {
		name, addr, err := address(c.host, c.secure)
		if (err == nil) != (c.addr != "") || (err == nil && (name != c.name || addr != c.addr)) {
			t.Errorf("%q is %q at %q, %v", c.host, name, addr, err)
		}
	}
	if _, err := New(Options{}).Host("ftp", "h"); err == nil {
		t.Error("ftp is spoken")
	}
}

// A user's TLS configuration is copied, and only requests HTTP/1.1.
func TestTLSConfig(t *testing.T) {
	t.Parallel()
	from := &tls.Config{NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13}
	got := tlsConfig(from, "name")
	if got.ServerName != "name" || len(got.NextProtos) != 1 || got.NextProtos[0] != "http/1.1" || got.MinVersion != tls.VersionTLS13 {
		t.Errorf("%+v", got)
	}
	if from.ServerName != "" || from.NextProtos[0] != "h2" {
		t.Errorf("the user's is changed: %+v", from)
	}
	if got := tlsConfig(&tls.Config{ServerName: "mine"}, "name"); got.ServerName != "mine" {
		t.Error(got.ServerName)
	}
	if got := tlsConfig(nil, "name"); got.ServerName != "name" {
		t.Error(got.ServerName)
	}
}

// Failed handshakes leave no connection, and hanging handshakes end.
func TestHandshakesThatFail(t *testing.T) {
	t.Parallel()
	silent := func(_ int, c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	babble := func(_ int, c net.Conn) {
		_, _ = c.Read(make([]byte, 4<<10)) // the first message of the client
		_, _ = io.WriteString(c, small+small)
		_, _ = io.Copy(io.Discard, c)
	}
	for _, c := range []struct {
		name    string
		serve   func(int, net.Conn)
		timeout time.Duration
		took    time.Duration
		want    string
	}{
		{"it hangs", silent, 0, 7 * time.Second, "deadline"},
		{"it hangs, with a timeout", silent, 3 * time.Second, 3 * time.Second, "no TLS handshake within 3s"},
		{"it hangs, with a longer timeout", silent, 30 * time.Second, 7 * time.Second, "deadline"},
		{"it speaks no TLS", babble, 0, 0, "first record does not look like a TLS handshake"},
		{"it speaks no TLS, with a timeout", babble, time.Second, 0, "first record does not look like a TLS handshake"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{serve: c.serve}
			h, err := New(Options{DialContext: s.dial, TLSHandshakeTimeout: c.timeout, MaxConns: 1}).Host("https", "h")
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
				began := time.Now()
				_, _, err = ask(ctx, h)
				if err == nil || !strings.Contains(err.Error(), c.want) || time.Since(began) != c.took {
					t.Errorf("%s: %v after %v", c.name, err, time.Since(began))
				}
				cancel()
			}
			s.done.Wait()
			open, _, _ := h.held()
			if dials, live := s.counts(); dials != 2 || live != 0 || open != 0 {
				t.Errorf("%s: %d connections, %d live, %d by count", c.name, dials, live, open)
			}
		})
	}
}

// An unknown certificate is rejected.
func TestCertificatesAreChecked(t *testing.T) {
	t.Parallel()
	{
		s := &script{serve: func(_ int, c net.Conn) {
			server, _ := overTLS(t)
			_ = tls.Server(c, server).Handshake()
		}}
		h, err := New(Options{DialContext: s.dial}).Host("https", "example.com")
		if err != nil {
			t.Fatal(err)
		}
		var unknown x509.UnknownAuthorityError
		if _, _, err := ask(t.Context(), h); !errors.As(err, &unknown) {
			t.Error(err)
		}
		s.done.Wait()
	}
}

// If a kept connection turns out to be closed, connections that were idle for longer are not tried.
func TestOlderConnectionsAreNotTried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		s := &script{serve: func(n int, c net.Conn) {
			r := bufio.NewReader(c)
			for takeRequest(r) {
				if down.Load() && n < 3 {
					return
				}
				time.Sleep(time.Second)
				_, _ = io.WriteString(c, small)
			}
		}}
		h := s.host(t, Options{})
		done := make(chan error, 3)
		for range cap(done) {
			go func() {
				_, _, err := ask(t.Context(), h)
				done <- err
			}()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		down.Store(true)
		if _, body, err := ask(t.Context(), h); err != nil || body != "hello" {
			t.Error(err)
		}
		if dials, live := s.counts(); dials != 4 || live != 1 {
			t.Errorf("%d connections, %d live", dials, live)
		}
		h.client.CloseIdle()
		s.done.Wait()
	})
}

// Connections that became idle at different times are closed at different times. That needs no
// further request.
func TestEachConnectionHasItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{serve: answers(small)}
		h := s.host(t, Options{IdleTimeout: 10 * time.Second})
		var open [3]*Response
		for i := range open {
			r, err := h.Do(t.Context(), []byte(request), true, Bound{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
			open[i] = r
		}
		for _, r := range open {
			_ = r.Close()
			time.Sleep(3 * time.Second)
		}
		for want := 3; want >= 0; want-- { // at 9 s, and then at 10.5, 13.5 and 16.5 s
			synctest.Wait()
			if _, live := s.counts(); live != want {
				t.Errorf("%d connections, want %d", live, want)
			}
			time.Sleep(3 * time.Second)
			if want == 3 {
				time.Sleep(-1500 * time.Millisecond)
			}
		}
		s.done.Wait()
	})
}

// A deadline that passed while a connection was kept has no effect.
func TestDeadlinesOfBefore(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{ReadTimeout: time.Second}, {HeaderTimeout: time.Second}, {ReadTimeout: time.Second, HeaderTimeout: time.Second}, {Timeout: time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{serve: answers(small)}
			h := s.host(t, o)
			for range 2 {
				if _, body, err := ask(t.Context(), h); err != nil || body != "hello" {
					t.Errorf("%q, %v", body, err)
				}
				if c := h.idle[0]; o.ReadTimeout > 0 && !c.set.Equal(mixed) {
					t.Errorf("the deadline counts as %v, but reading has its own", c.set)
				}
				time.Sleep(5 * time.Second)
			}
			if dials, _ := s.counts(); dials != 1 {
				t.Errorf("%d connections", dials)
			}
			h.client.CloseIdle()
			s.done.Wait()
		})
	}
}

func TestTransports(t *testing.T) {
	t.Parallel()
	dial := new(net.Dialer).DialContext
	var h2 http.Protocols
	h2.SetHTTP2(true)
	for name, transport := range map[string]*http.Transport{
		"it dials TLS":                  {DialTLSContext: dial},
		"it dials TLS in the old way":   {DialTLS: net.Dial},
		"it dials in the old way":       {Dial: net.Dial},
		"it keeps nothing":              {DisableKeepAlives: true},
		"it speaks HTTP/2 and no other": {Protocols: &h2},
	} {
		if _, err := FromTransport(transport); err == nil {
			t.Errorf("%s, which is understood", name)
		}
	}
	config := new(tls.Config)
	o, err := FromTransport(&http.Transport{
		DialContext: dial, TLSClientConfig: config, TLSHandshakeTimeout: 1, ResponseHeaderTimeout: 2, IdleConnTimeout: 3, MaxConnsPerHost: 4, MaxResponseHeaderBytes: 1 << 62,
	})
	if err != nil || o.DialContext == nil || o.TLS != config || o.TLSHandshakeTimeout != 1 || o.HeaderTimeout != 2 || o.IdleTimeout != 3 || o.MaxConns != 4 || o.MaxHead != 1<<20 {
		t.Errorf("%+v, %v", o, err)
	}
}
